import { parseArgs } from "node:util";
import { wilson } from "../../../src/stats/estimates.ts";
import { exploreForeign, measureDefect, type Outcome } from "./defect-measure.ts";
import { measureDoses } from "./doses.ts";
import { measureForeignGains } from "./foreign-gains.ts";
import { cleanSite, type Round, rounds } from "./rounds.ts";

/**
 * Counts of the planted defects of one kind. `lines` are the found ones that have a faulty line, `line` those of them whose
 * fix names it. `firstFix` counts fixes that come first, `fell` the lower scores.
 */
type Tally = {
  promised: boolean;
  planted: number;
  found: number;
  named: number;
  line: number;
  lines: number;
  firstFix: number;
  fell: number;
  date: string;
};
/** Findings are those of medium severity or more. */
type Clean = { sites: number; findings: number; date: string };
/** Recall by kind of defect, and findings on clean sites: over all rounds, and of each round. */
type Figures = { clean: Clean | null; kinds: Record<string, Tally> };
type Measurements = Figures & { rounds: Record<string, Figures> };

const measurementsFile = new URL("../measurements.json", import.meta.url).pathname;
const counts = ["planted", "found", "named", "line", "lines", "firstFix", "fell"] as const;
const today = () => new Date().toISOString().slice(0, 10);

/** Plants `per` defects of each kind, each on a site of its own. */
export async function measureKinds(round: Round, kinds: string[], per: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const kind of kinds)
    for (let nth = 0; nth < per; nth++) {
      const outcome = await measureDefect(round, kind, nth);
      outcomes.push(outcome);
      const verdict = outcome.found ? (outcome.named ? "found" : "found, misnamed") : "MISSED";
      const { markup, product, severity, line, firstFix, scores, said } = outcome;
      const fix = `${severity ?? "-"}, line ${line ?? "-"}, first fix ${firstFix}, score ${scores.join(" → ")}`;
      console.log(`${kind} ${nth} ${markup} ${product}: ${verdict}; ${fix}; ${said.join(" | ").slice(0, 300)}`);
    }
  return outcomes;
}

function tallyOf(outcomes: Outcome[], promised: boolean): Tally {
  const count = (holds: (outcome: Outcome) => boolean) => outcomes.filter(holds).length;
  return {
    promised,
    planted: outcomes.length,
    found: count(({ found }) => found),
    named: count(({ named }) => named),
    line: count(({ line }) => line === true),
    lines: count(({ line }) => line !== null),
    firstFix: count(({ firstFix }) => firstFix),
    fell: count(({ scores: [before, after] }) => after < before),
    date: today(),
  };
}

/** The findings of medium severity or more on the nth clean sites. */
export async function measureClean(round: Round, sites: number[]): Promise<string[]> {
  const findings: string[] = [];
  for (const nth of sites) {
    const site = cleanSite(round, nth);
    const grade = await exploreForeign(site);
    const serious = grade.frictions.filter(({ severity }) => severity !== "low");
    const where = `${nth} ${site.markup.name} ${site.product.kind}`;
    console.log(`${where}, ${site.pages.length} pages: score ${grade.score}, ${serious.length} findings`);
    for (const { severity, category, title, description } of serious)
      findings.push(`${where}: ${severity} ${category}: ${title}. ${description.slice(0, 200)}`);
  }
  return findings;
}

/** A part with the 95 % Wilson interval of its share. */
function shareOf(part: number, of: number): string {
  if (of === 0) return "–";
  const percents = Object.values(wilson(part, of)).map((share) => Math.round(100 * (share ?? 0)));
  return `${part}/${of} ${percents[0]} % (${percents[1]}–${percents[2]})`;
}

function printTable(kinds: Record<string, Tally>): void {
  const sum = (tallies: Tally[], key: (typeof counts)[number]) =>
    tallies.reduce((total, tally) => total + tally[key], 0);
  const row = (name: string, tallies: Tally[]) => {
    const [planted, found] = [sum(tallies, "planted"), sum(tallies, "found")];
    const cells = [
      shareOf(found, planted),
      shareOf(sum(tallies, "named"), planted),
      shareOf(sum(tallies, "line"), sum(tallies, "lines")),
      shareOf(sum(tallies, "firstFix"), found),
      shareOf(sum(tallies, "fell"), planted),
    ];
    console.log(`| ${name} | ${planted} | ${cells.join(" | ")} |`);
  };
  console.log("| Kind | Planted | Found | Named right | Line right | First fix right | Score fell |");
  console.log("|---|---|---|---|---|---|---|");
  for (const [kind, tally] of Object.entries(kinds)) row(`${kind}${tally.promised ? "" : " *"}`, [tally]);
  const all = Object.values(kinds);
  row(
    "Promised",
    all.filter(({ promised }) => promised),
  );
  row(
    "* Not promised",
    all.filter(({ promised }) => !promised),
  );
  row("All", all);
}

/** The numbers from `a..b`. */
function rangeOf(text: string): number[] {
  const [from = 0, to = from] = text.split("..").map(Number);
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

/** Adds the figures of a round to the file, and prints its table. Kinds that were not measured keep their figures. */
async function store(round: string, measured: Figures): Promise<void> {
  const file = Bun.file(measurementsFile);
  const stored: Measurements["rounds"] = (await file.exists()) ? ((await file.json()) as Measurements).rounds : {};
  const before = stored[round] ?? { clean: null, kinds: {} };
  const merged: Record<string, Figures> = {
    ...stored,
    [round]: { clean: measured.clean ?? before.clean, kinds: { ...before.kinds, ...measured.kinds } },
  };
  await Bun.write(file, `${JSON.stringify({ ...totalOf(Object.values(merged)), rounds: merged }, null, 2)}\n`);
}

function totalOf(figures: Figures[]): Figures {
  const clean = figures.flatMap((each) => each.clean ?? []);
  const kinds: Record<string, Tally> = {};
  for (const [kind, tally] of figures.flatMap((each) => Object.entries(each.kinds))) {
    const other = kinds[kind] ?? { ...tally, planted: 0, found: 0, named: 0, line: 0, lines: 0, firstFix: 0, fell: 0 };
    kinds[kind] = {
      ...Object.fromEntries(counts.map((key) => [key, other[key] + tally[key]])),
      promised: other.promised || tally.promised,
      date: [other.date, tally.date].sort()[0]!,
    } as Tally;
  }
  const sum = (key: "sites" | "findings") => clean.reduce((total, each) => total + each[key], 0);
  const date = clean.map((each) => each.date).sort()[0];
  return { clean: date ? { sites: sum("sites"), findings: sum("findings"), date } : null, kinds };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kind: { type: "string", default: "" },
      per: { type: "string", default: "3" },
      seeds: { type: "string", default: "0..15" },
      round: { type: "string" },
      what: { type: "string", default: "recall,clean" },
      "dry-run": { type: "boolean", default: false },
    },
  });
  const wanted = new RegExp(values.kind);
  const what = values.what.split(",");
  const seeds = rangeOf(values.seeds);
  for (const round of rounds.filter(({ name }) => name === (values.round ?? name))) {
    const kinds = Object.keys(round.defects).filter((each) => wanted.test(each));
    const figures: Figures = { clean: null, kinds: {} };
    if (what.includes("recall")) {
      const outcomes = Map.groupBy(await measureKinds(round, kinds, Number(values.per)), ({ kind }) => kind);
      for (const [kind, all] of outcomes) figures.kinds[kind] = tallyOf(all, round.defects[kind]!.promised);
      printTable(figures.kinds);
    }
    if (what.includes("clean")) {
      const findings = await measureClean(round, seeds);
      for (const finding of findings) console.log(finding);
      console.log(`${findings.length} findings of medium severity or more on ${seeds.length} clean sites`);
      figures.clean = { sites: seeds.length, findings: findings.length, date: today() };
    }
    if (!values["dry-run"]) await store(round.name, figures);
    if (what.includes("doses")) await measureDoses(round, seeds);
    if (what.includes("gains")) await measureForeignGains(round, wanted);
  }
}

if (import.meta.main) await main();
