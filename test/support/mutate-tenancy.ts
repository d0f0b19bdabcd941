// `bun test/support/mutate-tenancy.ts [--quick] [pattern of files and lines]`: removes each predicate on the organization from src/, one at a time, and looks
// for leaks between organizations; with `--quick` only by the probes that take less than a second. Prints which removals were noticed. Exits with 1 if one
// was not and isn't listed in equivalent-predicates.json: by file and a text that occurs once there, with why nothing changes without the predicate in it.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Glob, plugin } from "bun";
import equivalents from "./equivalent-predicates.json" with { type: "json" };

/** A predicate in a source file. */
type Predicate = {
  file: string;
  line: number;
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
  drizzle: /\beq\((?:(?:(?:[\w.]*\.)?(?:orgId|org|organizationId)|orgs\.id),|\w+, \w+\.org\))/g,
  sql: /\b(?:\w+\.)?org_id *= *(?:\?\d*|\$\w+|:\w+|[a-z_]+\.(?:org_)?id)|\b\w+\.id *= *[a-z_]+\.org_id/g,
  template: /(?:\$\{[\w.]+\.orgId\}|\b(?:\w+\.)?org_id) = \$\{[\w.]+\}/g,
  code: /\b[\w.?]*(?:orgId|\borg) (?:!==|===) [\w.?]*\b(?:orgId|org)\b/g,
};

function predicatesOf(file: string, text: string): Predicate[] {
  return Object.entries(kinds)
    .flatMap(([kind, pattern]) =>
      [...text.matchAll(pattern)].map(({ index: from, 0: found }) => {
        const to = kind === "drizzle" ? endOfCall(text, text.indexOf("(", from)) : from + found.length;
        const line = text.slice(0, from).split("\n").length;
        return {
          file,
          line,
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

const oneLine = (text: string) => text.replace(/\s+/g, " ");

/** The reasons of a file by the numbers of its predicates. Throws unless each text occurs once, with one predicate in it. */
function reasonsOf(file: string, text: string): Map<number, string> {
  const source = oneLine(text);
  const own = predicatesOf(file, source);
  return new Map(
    Object.entries((equivalents as Record<string, Record<string, string>>)[file] ?? {}).map(([excused, why]) => {
      const at = source.indexOf(excused);
      const within = own.flatMap(({ from, to }, i) => (from >= at && to <= at + excused.length ? [i] : []));
      if (at < 0 || source.indexOf(excused, at + 1) >= 0 || within.length !== 1)
        throw new Error(`equivalent-predicates.json: ${file} doesn't have this once, with one predicate: ${excused}`);
      return [within[0] ?? 0, why];
    }),
  );
}

const sources = new Map<string, string>();
/** Why nothing changes without a predicate, by its number. */
const reasons = new Map<number, string>();
for (const file of [...new Glob("src/**/*.{ts,tsx}").scanSync(root)].sort()) {
  const text = await Bun.file(join(root, file)).text();
  const own = predicatesOf(file, text);
  for (const [i, why] of reasonsOf(file, text)) reasons.set(predicates.length + i, why);
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

const missing = Object.keys(equivalents).filter((file) => predicates.every((each) => each.file !== file));
if (missing.length > 0) throw new Error(`equivalent-predicates.json names files without predicates: ${missing}`);

const { values, positionals } = parseArgs({ options: { quick: { type: "boolean" } }, allowPositionals: true });
const { findBorderLeak, findLeaks, findQuickLeak } = await import("./tenancy.ts");
/** Far longer than all probes take on a busy machine, so that only a removal that stops them counts as noticed by it. */
const limitMs = 300_000;
/** What reveals that the predicate is gone, or undefined. */
async function reveal(index: number): Promise<string | undefined> {
  removed = index;
  const findSlowly = async () => (await findBorderLeak()) ?? (await findLeaks({ onlyFirst: true })).wrong[0];
  const find = async () => (await findQuickLeak()) ?? (values.quick ? undefined : await findSlowly());
  return Promise.race([find().catch(String), Bun.sleep(limitMs).then(() => "never ends")]);
}

const wanted = new RegExp(positionals[0] ?? "");
const chosen = predicates
  .map((each, index) => ({ ...each, index }))
  .filter((each) => wanted.test(`${each.file}:${each.line}`));
const clean = await reveal(-1);
if (clean !== undefined) throw new Error(`there is a leak without any change: ${clean}`);
const counts = { killed: 0, equivalent: 0, survived: 0 };
for (const { index, file, line, text } of chosen) {
  const why = reasons.get(index);
  const found = why === undefined ? await reveal(index) : undefined;
  const result = found !== undefined ? "killed" : why === undefined ? "survived" : "equivalent";
  counts[result]++;
  const detail = found ?? why ?? "";
  console.log(`${result.padEnd(10)} ${file}:${line} ${text}  ${detail.replaceAll("\n", " ").slice(0, 160)}`);
}
console.log(
  `\n${chosen.length} predicates: ${counts.killed} killed, ${counts.equivalent} equivalent, ${counts.survived} survived`,
);
process.exit(counts.survived === 0 ? 0 : 1);
