import { parseArgs } from "node:util";
import { conventionsKind } from "../../../src/grading/findings/finding-kinds.ts";
import { wilson } from "../../../src/stats/estimates.ts";
import { writeFindings } from "../../support/explorer-findings.ts";
import { exploreForeign, measureDefect, type Outcome } from "./defect-measure.ts";
import { measureDoses } from "./doses.ts";
import { measureForeignGains } from "./foreign-gains.ts";
import { kindIdOfTitle } from "./kinds.ts";
import { type Clean, type counts, type Figures, storeMeasurements, type Tally } from "./measurements.ts";
import { cleanSite, type Round, rounds } from "./rounds.ts";

const today = () => new Date().toISOString().slice(0, 10);

/** Plants `per` defects of each kind, each on a site of its own. `from`: the number of the first site. */
export async function measureKinds(round: Round, kinds: string[], per: number, from = 0): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const kind of kinds)
    for (let nth = from; nth < from + per; nth++) {
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

/** The findings on the nth clean sites. Conventions that a site lacks are none. */
export async function measureClean(round: Round, sites: number[]): Promise<Clean> {
  const kinds: Record<string, number> = {};
  let findings = 0;
  for (const nth of sites) {
    const site = cleanSite(round, nth);
    const { score, frictions } = await exploreForeign(site);
    const falseFindings = frictions.filter(({ title }) => kindIdOfTitle(title) !== conventionsKind.id);
    console.log(
      `${nth} ${site.markup.name} ${site.product.kind}, ${site.pages.length} pages: score ${score}, ${falseFindings.length} findings`,
    );
    for (const { severity, category, title, description } of falseFindings) {
      console.log(`  ${severity} ${category}: ${title}. ${description.slice(0, 200)}`);
      if (severity !== "low") findings += 1;
      const kind = kindIdOfTitle(title) ?? "other";
      kinds[kind] = (kinds[kind] ?? 0) + 1;
    }
  }
  return { sites: sites.length, findings, kinds, date: today() };
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

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kind: { type: "string", default: "" },
      per: { type: "string", default: "3" },
      from: { type: "string", default: "0" },
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
      const outcomes = Map.groupBy(
        await measureKinds(round, kinds, Number(values.per), Number(values.from)),
        ({ kind }) => kind,
      );
      for (const [kind, all] of outcomes) figures.kinds[kind] = tallyOf(all, round.defects[kind]!.promised);
      printTable(figures.kinds);
    }
    if (what.includes("clean")) {
      figures.clean = await measureClean(round, seeds);
      console.log(`${figures.clean.findings} findings of medium severity or more on ${seeds.length} clean sites`);
    }
    if (!values["dry-run"]) await storeMeasurements(round.name, figures);
    if (what.includes("doses")) await measureDoses(round, seeds);
    if (what.includes("gains")) await measureForeignGains(round, wanted);
  }
  if (!values["dry-run"]) await writeFindings();
}

if (import.meta.main) await main();
