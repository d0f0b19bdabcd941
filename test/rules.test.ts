import { expect, test } from "bun:test";
import { dirname, join, relative } from "node:path";
import { openDb } from "../src/db/open.ts";
import { measureFile } from "./support/code-metrics.ts";
import equivalentPredicates from "./support/equivalent-predicates.json" with { type: "json" };

const root = join(import.meta.dir, "..");
const files = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync(root)].sort();
const text = new Map(
  await Promise.all(files.map(async (file) => [file, await Bun.file(join(root, file)).text()] as const)),
);

/** All imports of a file, including types; local files as paths from the root. */
function importsOf(file: string): string[] {
  const paths = (text.get(file) ?? "").matchAll(
    /^(?:import|export)\b[^"';]*?(?:from )?"([^"]+)"|\bimport\("([^"]+)"\)/gm,
  );
  return [...paths].map(([, fixed, dynamic]) => {
    const path = fixed ?? dynamic ?? "";
    return path.startsWith(".") ? relative(root, join(root, dirname(file), path)) : path;
  });
}
const localImportsOf = (file: string) => importsOf(file).filter((path) => text.has(path));

const offenders = (allowed: (file: string) => boolean, breaks: (file: string) => boolean) =>
  files.filter((file) => !allowed(file) && breaks(file));

const isAdapter = (path: string) => /^src\/(?!mcp\/|web\/)[a-z]+\/(routes|tools|resources|mcp-prompts)\.ts$/.test(path);

const isApp = (path: string) =>
  /^src\/(app\.tsx|api-routes\.ts|app-error\.ts|mcp-endpoints\.ts|request-hooks\.ts)$/.test(path);

// A layer may import itself and the layers below it, including types.
const layers: [string, (file: string) => boolean][] = [
  ["main", (file) => file === "src/main.ts"],
  ["app", isApp],
  ["adapters", isAdapter],
  ...[
    ...[
      "cli",
      "web",
      "service",
      "mcp",
      "deletions",
      "queue",
      "trusts",
      "workers",
      "bisects",
      "gates",
      "experiments",
      "regrades",
      "exchange",
      "inbox",
    ],
    ...["suites", "spending", "proposals", "calibration", "experiments", "comparisons"],
    ...[
      "matrix",
      "trends",
      "schedules",
      "fixes",
      "runs",
      "shares",
      "telemetry",
      "checks",
      "reports",
      "traffic",
      "friction",
      "field",
      "notifications",
      "prompts",
      "archives",
      "providers",
      "backups",
    ],
    ...["auth", "secrets", "models", "audit", "jobs", "http", "context", "db"],
    ...[
      "places",
      "stats",
      "grading",
      "agents",
      "net",
      "log",
      "once",
      "poll",
      "deadline",
      "signal",
      "redaction",
      "event-loop",
      "lazy-packages",
      "config",
      "cron",
      "schema",
      "errors",
      "build",
    ],
  ].map((name): [string, (file: string) => boolean] => [
    name,
    (file) => file.startsWith(`src/${name}/`) || file === `src/${name}.ts`,
  ]),
];
/** From the top: the adapters of features are between the service and MCP. */
const order = ["main", "cli", "app", "web", "service", "adapters"];
const rank = new Map(
  [...order, ...layers.map(([name]) => name).filter((name) => !order.includes(name))].map((name, i) => [name, i]),
);
const layerOf = (file: string) => layers.find(([, holds]) => holds(file))?.[0];
const rankOf = (file: string) => rank.get(layerOf(file) ?? "") ?? -1;

test("every file belongs to a layer", () => {
  expect(files.filter((file) => rankOf(file) < 0 && !file.endsWith(".d.ts"))).toEqual([]);
});

test("imports go downward only, even for types", () => {
  const upward = files.flatMap((file) =>
    localImportsOf(file)
      .filter((path) => rankOf(path) < rankOf(file))
      .map((path) => `${file} → ${path}`),
  );
  expect(upward).toEqual([]);
});

/** The cycles of a graph, as paths. */
function cyclesOf(graph: Map<string, Iterable<string>>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const walk = (node: string, path: string[]) => {
    if (path.includes(node)) cycles.push([...path.slice(path.indexOf(node)), node].join(" → "));
    else if (!done.has(node)) {
      for (const next of graph.get(node) ?? []) walk(next, [...path, node]);
      done.add(node);
    }
  };
  for (const node of graph.keys()) walk(node, []);
  return cycles;
}

test("files have no import cycles, even for types", () => {
  expect(cyclesOf(new Map(files.map((file) => [file, localImportsOf(file)])))).toEqual([]);
});

test("folders have no import cycles, even for types", () => {
  const folderOf = (file: string) => file.split("/")[1] ?? "";
  const graph = new Map<string, Set<string>>();
  for (const file of files) {
    const own = graph.get(folderOf(file)) ?? new Set();
    for (const path of localImportsOf(file)) if (folderOf(path) !== folderOf(file)) own.add(folderOf(path));
    graph.set(folderOf(file), own);
  }
  expect(cyclesOf(graph)).toEqual([]);
});

test("routes and tools of a feature are imported only by the app", () => {
  expect(
    offenders(
      (file) => isApp(file) || isAdapter(file),
      (file) => importsOf(file).some(isAdapter),
    ),
  ).toEqual([]);
});

test.each([
  [
    "Elysia",
    /^(elysia|@elysiajs\/)/,
    /^src\/(app\.tsx|api-routes\.ts|auth\/|http\/|web\/|[a-z]+\/([a-z]+-)?routes\.tsx?$)/,
  ],
  ["the MCP SDKs", /^@modelcontextprotocol\//, /^src\/(mcp\/|agents\/llm\/mcp-tools|agents\/explorer\/mcp-listing)/],
  ["BullMQ and its Redis client", /^(bullmq|ioredis)$/, /^src\/places\//],
  [
    "Drizzle",
    /^drizzle-orm/,
    /^src\/(db|auth|audit|deletions|trusts|jobs|prompts|archives|providers|models|secrets|comparisons|friction|field|fixes|gates|runs|schedules|reports|shares|trends|matrix|regrades|exchange|telemetry|notifications|workers|queue|inbox|spending|traffic|proposals|suites|calibration|experiments|bisects|backups|checks)\//,
  ],
])("only the expected files import %s", (_, packages, places) => {
  expect(
    offenders(
      (file) => places.test(file),
      (file) => importsOf(file).some((path) => packages.test(path)),
    ),
  ).toEqual([]);
});

test.each([
  // The test request uses the gateway of its own process, over its socket.
  ["fetch", /(?<![.\w])fetch\(/, /^src\/(net\/|cli\/|models\/trial\.ts$)/],
  ["process.env", /process\.env/, /^src\/(main\.ts|cli\/)/],
  ["process.exit", /process\.exit/, /^src\/(main\.ts|cli\/)/],
  ["console", /(?<![.\w])console\./, /^src\/(main\.ts|cli\/)/],
  ["the clock", /Date\.now\b|new Date\(\)/, /^src\/(main\.ts|cli\/|context\.ts)/],
])("only the expected files use %s", (_, pattern, places) => {
  const code = (file: string) => (text.get(file) ?? "").replace(/^\s*(\*|\/\/|\/\*).*$/gm, "");
  expect(
    offenders(
      (file) => places.test(file),
      (file) => pattern.test(code(file)),
    ),
  ).toEqual([]);
});

test("file and folder names are kebab-case nouns", () => {
  expect(files.filter((file) => !/^src(\/[a-z0-9]+(-[a-z0-9]+)*)+(\.d)?\.tsx?$/.test(file))).toEqual([]);
  expect(
    files.filter((file) => /(^|\/)(utils?|lib|helpers?|types|services|modules|common|index)(\/|\.tsx?$)/.test(file)),
  ).toEqual([]);
});

/** What has state of its own and a lifetime, and reads better as one function than as functions over its state. */
const stateful = [
  "startEgress",
  "openRelay",
  "createGateway",
  "startProcess",
  "createDelegatedCgroup",
  "createStandby",
  "createTurns",
  "createBetterAuth",
  "createRunner",
  "createService",
  "openWorkerExecutor",
];

test("no function holds more than five named functions, unless it has state of its own", () => {
  const crowded = files.flatMap((file) =>
    measureFile(file, text.get(file) ?? "").functions.filter(({ name, inner }) => name !== "" && inner.length > 5),
  );
  expect(crowded.map(({ name }) => name).filter((name) => !stateful.includes(name))).toEqual([]);
}, 30_000);

test("files have at most 400 lines", () => {
  expect(files.filter((file) => (text.get(file) ?? "").split("\n").length > 401)).toEqual([]);
});

test("the top level contains only the listed files", async () => {
  const tracked = (await Bun.$`git ls-files`.cwd(root).text()).trim().split("\n");
  expect([...new Set(tracked.map((path) => path.split("/")[0]))].sort()).toEqual([
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "action.yml",
    "biome.json",
    "bun.lock",
    "bunfig.toml",
    "drizzle",
    "openapi.json",
    "package.json",
    "patches",
    "release",
    "src",
    "test",
    "tsconfig.json",
  ]);
});

test("every table is strict, and references between rows of organizations include the organization", () => {
  const { $client } = openDb(":memory:");
  const tables = $client
    .query<{ name: string; strict: number }, []>(
      "select name, strict from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite_%' and name not like '\\_\\_%' escape '\\'",
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
        // People exist independently of organizations.
        .filter(([key]) => key?.table !== "orgs" && key?.table !== "people")
        .filter((columns) => !columns.some(({ from }) => from === "org_id"))
        .map((columns) => `${name} → ${columns[0]?.table}`)
    );
  });
  expect(lone).toEqual([]);
});

test("each predicate that is excused from the mutations of tenancy stands once in its file", async () => {
  const stale: string[] = [];
  for (const [file, reasons] of Object.entries<Record<string, string>>(equivalentPredicates)) {
    const source = (await Bun.file(join(root, file)).text()).replace(/\s+/g, " ");
    for (const predicate of Object.keys(reasons))
      if (source.split(predicate).length !== 2) stale.push(`${file}: ${predicate}`);
  }
  expect(stale).toEqual([]);
});

test("packages have exact versions", async () => {
  const { dependencies, devDependencies } = await Bun.file(join(root, "package.json")).json();
  const loose = Object.entries<string>({ ...dependencies, ...devDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+(-[\w.-]+)?$/.test(version),
  );
  expect(loose).toEqual([]);
});
