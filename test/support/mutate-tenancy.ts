// `bun test/support/mutate-tenancy.ts [pattern of files and lines]`: removes each predicate on the organization from src/, one at a time, and looks for leaks
// between organizations. Prints which removals were noticed. Exits with 1 if one was not and isn't listed as equivalent.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { Glob, plugin } from "bun";
import equivalents from "./equivalent-predicates.json" with { type: "json" };

/** A predicate in a source file. */
type Predicate = {
  file: string;
  line: number;
  inside: string;
  from: number;
  to: number;
  text: string;
  kind: keyof typeof kinds;
};

const root = join(import.meta.dir, "..", "..");
const predicates: Predicate[] = [];
/** Index of the predicate that doesn't apply. */
let removed = -1;
Object.assign(globalThis, { isRemoved: (index: number) => index === removed });

/** The end of the call whose opening parenthesis is at `open`. */
function endOfCall(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && --depth === 0) return at + 1;
  }
  throw new Error("a parenthesis isn't closed");
}

const kinds = {
  drizzle: /\beq\((?:(?:[\w.]*\.)?(?:orgId|org|organizationId)|orgs\.id),/g,
  sql: /\b(?:\w+\.)?org_id *= *(?:\?\d*|\$\w+|:\w+|[a-z_]+\.org_id)/g,
  template: /(?:\$\{[\w.]+\.orgId\}|\b(?:\w+\.)?org_id) = \$\{[\w.]+\}/g,
  code: /\b[\w.?]*(?:orgId|\borg) (?:!==|===) [\w.]*\b(?:orgId|org)\b/g,
};

/** The name of the function, method or constant that contains a position. */
const nameAround = (text: string, at: number): string =>
  [...text.slice(0, at).matchAll(/\b(?:function\*?|const) (\w+)|^ {4}(?:async )?(\w+)(?:\(|: \()/gm)]
    .map(([, name, method]) => name ?? method ?? "")
    .at(-1) ?? "";

function predicatesOf(file: string, text: string): Predicate[] {
  return Object.entries(kinds)
    .flatMap(([kind, pattern]) =>
      [...text.matchAll(pattern)].map(({ index: from, 0: found }) => {
        const to = kind === "drizzle" ? endOfCall(text, text.indexOf("(", from)) : from + found.length;
        const line = text.slice(0, from).split("\n").length;
        return {
          file,
          line,
          inside: nameAround(text, from),
          from,
          to,
          text: text.slice(from, to),
          kind: kind as Predicate["kind"],
        };
      }),
    )
    .sort((a, b) => a.from - b.from);
}

/** The source with a switch at each predicate. */
function withSwitches(text: string, own: Predicate[], first: number): string {
  return own
    .map((each, i) => ({ ...each, index: first + i }))
    .reverse()
    .reduce((source, { from, to, text: found, kind, index }) => {
      const off = found.includes("!==") ? "false" : "true";
      const becomes = {
        drizzle: `(isRemoved(${index}) ? undefined : ${found})`,
        sql: `${found} /*predicate ${index}*/`,
        // In a constant of a module, which is evaluated once.
        template: `${found} /*predicate ${index}*/`,
        code: `(isRemoved(${index}) ? ${off} : ${found})`,
      }[kind];
      return source.slice(0, from) + becomes + source.slice(to);
    }, text);
}

const sources = new Map<string, string>();
for (const file of [...new Glob("src/**/*.{ts,tsx}").scanSync(root)].sort()) {
  const text = await Bun.file(join(root, file)).text();
  const own = predicatesOf(file, text);
  if (own.length === 0) continue;
  sources.set(join(root, file), withSwitches(text, own, predicates.length));
  predicates.push(...own);
}
plugin({
  name: "switches",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.tsx?$/ }, async ({ path }) => ({
      contents: sources.get(path) ?? (await Bun.file(path).text()),
      loader: path.endsWith("x") ? "tsx" : "ts",
    }));
  },
});
// In SQL, a predicate carries its number in a comment.
for (const name of ["prepare", "query", "run"] as const) {
  const real = Database.prototype[name] as (sql: string, ...rest: unknown[]) => unknown;
  Object.assign(Database.prototype, {
    [name](this: Database, sql: string, ...rest: unknown[]) {
      const changed = sql.replace(/(\S+ *= *\S+) \/\*predicate (\d+)\*\//g, (_, predicate, index) =>
        Number(index) === removed ? `(${predicate} or 1)` : predicate,
      );
      return real.call(this, changed, ...rest);
    },
  });
}

const { findBorderLeak, findLeaks } = await import("./tenancy.ts");
const limitMs = 60_000;
/** What reveals that the predicate is gone, or undefined. */
async function reveal(index: number): Promise<string | undefined> {
  removed = index;
  const find = async () => (await findBorderLeak()) ?? (await findLeaks({ onlyFirst: true })).wrong[0];
  return Promise.race([find().catch(String), Bun.sleep(limitMs).then(() => "never ends")]);
}

const unknown = Object.entries(equivalents).flatMap(([file, reasons]) =>
  Object.keys(reasons)
    .filter((name) => predicates.every((each) => each.file !== file || `${each.inside}: ${each.text}` !== name))
    .map((name) => `${file} ${name}`),
);
if (unknown.length > 0) throw new Error(`equivalent-predicates.json names what isn't there:\n${unknown.join("\n")}`);
const clean = await reveal(-1);
if (clean !== undefined) throw new Error(`there is a leak without any change: ${clean}`);
const wanted = new RegExp(process.argv[2] ?? "");
const counts = { killed: 0, equivalent: 0, survived: 0 };
for (const [index, { file, line, inside, text }] of predicates.entries()) {
  if (!wanted.test(`${file}:${line}`)) continue;
  const why = (equivalents as Record<string, Record<string, string>>)[file]?.[`${inside}: ${text}`];
  const found = why === undefined ? await reveal(index) : undefined;
  const result = found !== undefined ? "killed" : why === undefined ? "survived" : "equivalent";
  counts[result]++;
  const detail = found ?? why ?? "";
  console.log(`${result.padEnd(10)} ${file}:${line} ${inside}: ${text}  ${detail.replaceAll("\n", " ").slice(0, 160)}`);
}
const all = counts.killed + counts.equivalent + counts.survived;
console.log(
  `\n${all} predicates: ${counts.killed} killed, ${counts.equivalent} equivalent, ${counts.survived} survived`,
);
process.exit(counts.survived === 0 ? 0 : 1);
