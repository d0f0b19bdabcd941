import { expect, test } from "bun:test";
import { dirname, join, relative } from "node:path";
import { openDb } from "../src/db/open.ts";

const root = join(import.meta.dir, "..");
const files = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync(root)].sort();
const text = new Map(
  await Promise.all(files.map(async (file) => [file, await Bun.file(join(root, file)).text()] as const)),
);
const transpilers = { ts: new Bun.Transpiler({ loader: "ts" }), tsx: new Bun.Transpiler({ loader: "tsx" }) };

/** Imports that survive compilation (types do not count), local ones as paths from the root. */
function importsOf(file: string): string[] {
  const scanned = transpilers[file.endsWith("x") ? "tsx" : "ts"].scanImports(text.get(file) ?? "");
  return scanned.map(({ path }) => (path.startsWith(".") ? relative(root, join(root, dirname(file), path)) : path));
}

const offenders = (allowed: (file: string) => boolean, breaks: (file: string) => boolean) =>
  files.filter((file) => !allowed(file) && breaks(file));

// Higher places may import lower ones. A feature's routes, tools and pages stand above every feature.
const floors: [string, RegExp][] = [
  ["main", /^src\/main\.ts$/],
  ["cli", /^src\/cli\//],
  ["app", /^src\/(app\.tsx|service\.ts|openapi\.ts)$/],
  ["routes", /^src\/(web\/|mcp\/|[a-z]+\/(routes|tools)\.tsx?$)/],
  ["auth", /^src\/auth\//],
  ["gates", /^src\/gates\//],
  ["regrades and exchange", /^src\/(regrades|exchange)\//],
  ["runs", /^src\/runs\//],
  ["reports", /^src\/(reports|shares)\//],
  ["prompts", /^src\/prompts\//],
  ["providers and models", /^src\/(providers|models)\//],
  ["engines", /^src\/(jobs|agents|grading)\//],
  ["net and db", /^src\/(net|db)\//],
  ["ground", /^src\/(config|modelsettings|peoplesettings|weights|errors|deps|schema|paging|body|api|log)\.ts$/],
];
const floorOf = (file: string) => floors.findIndex(([, pattern]) => pattern.test(file));

// The tables take their closed sets from the files that own them; the reference needs the type of the routes.
const lifts = new Set(["src/db/tables.ts src/agents/agent.ts", "src/db/tables.ts src/grading/kinds.ts"]);

test("every file stands on a floor", () => {
  expect(files.filter((file) => floorOf(file) < 0 && !file.endsWith(".d.ts"))).toEqual([]);
});

test("imports run downward only", () => {
  const upward = files.flatMap((file) =>
    importsOf(file)
      .filter((path) => path.startsWith("src/") && /\.tsx?$/.test(path))
      .filter((path) => floorOf(path) < floorOf(file) && !lifts.has(`${file} ${path}`))
      .map((path) => `${file} → ${path}`),
  );
  expect(upward).toEqual([]);
});

test("no import comes back to where it began", () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const walk = (file: string, path: string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
    else if (!done.has(file)) {
      for (const next of importsOf(file).filter((to) => text.has(to))) walk(next, [...path, file]);
      done.add(file);
    }
  };
  for (const file of files) walk(file, []);
  expect(circles).toEqual([]);
});

test("a feature is imported by its own file, never by its routes or tools", () => {
  const isAdapter = (path: string) => /^src\/[a-z]+\/(routes|tools)\.tsx?$/.test(path);
  expect(
    offenders(
      (file) => file === "src/app.tsx",
      (file) => importsOf(file).some(isAdapter),
    ),
  ).toEqual([]);
});

test.each([
  ["Elysia", /^(elysia|@elysiajs\/)/, /^src\/(app\.tsx|auth\/|web\/|[a-z]+\/routes\.tsx?$)/],
  ["the MCP SDKs", /^@modelcontextprotocol\//, /^src\/mcp\//],
  [
    "Drizzle",
    /^drizzle-orm/,
    /^src\/(db|auth|jobs|prompts|providers|models|gates|runs|reports|shares|regrades|exchange)\/|^src\/cli\/doctor\.ts$/,
  ],
])("%s is imported only where it belongs", (_, packages, places) => {
  expect(
    offenders(
      (file) => places.test(file),
      (file) => importsOf(file).some((path) => packages.test(path)),
    ),
  ).toEqual([]);
});

test.each([
  // The trial speaks to the gateway of its own process, over its socket.
  ["fetch", /(?<![.\w])fetch\(/, /^src\/(net\/|cli\/|models\/trial\.ts$)/],
  ["process.env", /process\.env/, /^src\/(main\.ts|cli\/)/],
  ["process.exit", /process\.exit/, /^src\/(main\.ts|cli\/)/],
  ["console", /(?<![.\w])console\./, /^src\/(main\.ts|cli\/)/],
  ["the clock", /Date\.now\b|new Date\(\)/, /^src\/(main\.ts|cli\/|service\.ts)/],
])("%s is used only where it belongs", (_, pattern, places) => {
  const code = (file: string) => (text.get(file) ?? "").replace(/^\s*(\*|\/\/|\/\*).*$/gm, "");
  expect(
    offenders(
      (file) => places.test(file),
      (file) => pattern.test(code(file)),
    ),
  ).toEqual([]);
});

test("names say what is in a file", () => {
  expect(
    files.filter((file) => /(^|\/)(utils?|lib|helpers?|types|services|modules|common|index)(\/|\.tsx?$)/.test(file)),
  ).toEqual([]);
});

test("no file has more than 300 lines, but for the one that holds every table", () => {
  const long = files.filter((file) => (text.get(file) ?? "").split("\n").length > 301);
  expect(long.filter((file) => file !== "src/db/tables.ts")).toEqual([]);
});

test("the top level holds what the README lists and nothing else", async () => {
  const tracked = (await Bun.$`git ls-files`.cwd(root).text()).trim().split("\n");
  expect([...new Set(tracked.map((path) => path.split("/")[0]))].sort()).toEqual([
    ".ci",
    ".gitignore",
    "LICENSE",
    "README.md",
    "biome.json",
    "bun.lock",
    "bunfig.toml",
    "drizzle",
    "package.json",
    "patches",
    "src",
    "test",
    "tsconfig.json",
  ]);
});

test("every table is strict, and every reference between two rows of organisations bears the organisation", () => {
  const { $client } = openDb(":memory:");
  const tables = $client
    .query<{ name: string; strict: number }, []>(
      "select name, strict from pragma_table_list where schema = 'main' and name not like 'sqlite_%' and name not like '\\_\\_%' escape '\\'",
    )
    .all();
  expect(tables.filter(({ strict }) => strict !== 1)).toEqual([]);
  const lone = tables.flatMap(({ name }) => {
    const keys = $client
      .query<{ id: number; table: string; from: string }, []>(`select * from pragma_foreign_key_list('${name}')`)
      .all();
    const byKey = Map.groupBy(keys, ({ id }) => id);
    return (
      [...byKey.values()]
        // People stand above organisations.
        .filter(([key]) => key?.table !== "orgs" && key?.table !== "people")
        .filter((columns) => !columns.some(({ from }) => from === "org_id"))
        .map((columns) => `${name} → ${columns[0]?.table}`)
    );
  });
  expect(lone).toEqual([]);
});

test("exact versions only", async () => {
  const { dependencies, devDependencies } = await Bun.file(join(root, "package.json")).json();
  const loose = Object.entries<string>({ ...dependencies, ...devDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version),
  );
  expect(loose).toEqual([]);
});
