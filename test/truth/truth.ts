import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Friction } from "../../src/grading/grade.ts";
import { fetchedFolder } from "./corpora.ts";
import { type DefectKind, defectKinds, names, type Place, places, plant } from "./defects.ts";
import { measureDegradation, measureRemoval, printDegradation } from "./degrade.ts";
import { generateSite } from "./docs-site.ts";
import { exploreSite, measureGains, printGains } from "./gains.ts";
import { printGates } from "./gates.ts";
import { fetchedGoalFiles, goalFiles, locate, printLocated, printRemoval, readGoals } from "./goals.ts";

const serious = (friction: Friction) => friction.severity !== "low";

type Tally = { planted: number; found: number; missed: string[] };

const pairs = defectKinds.flatMap((kind) => places.map((place) => ({ kind, place })));
/** Defects that are planted for one seed, each on its own site. Over the seeds, every kind has its turn. */
const perSeed = 6;
/** Defects of one kind that are added to one site, one after the other. */
const doses = 3;

/** Plants each kind of defect on and off the path to the goal, one per site, and counts the ones that the reports name. */
export async function measureRecall(seeds: number, only?: DefectKind[]) {
  const recall = new Map<string, Tally>();
  const falls = { added: 0, fell: 0, flat: [] as string[] };
  const clean: { seed: number; inventions: string[]; ms: number; pages: number; found: boolean }[] = [];
  const jobs = Array.from({ length: seeds }, (_, i) => i + 1);
  const work = async (seed: number) => {
    const base = generateSite(seed);
    const before = await exploreSite(base);
    clean.push({
      seed,
      inventions: before.grade.frictions.filter(serious).map(({ title }) => title),
      ms: before.ms,
      pages: base.pages.size,
      found: JSON.stringify(before.events).includes(base.answer.heading),
    });
    const turn = only
      ? pairs.filter(({ kind }) => only.includes(kind))
      : Array.from({ length: perSeed }, (_, i) => pairs[(seed * perSeed + i) % pairs.length]!);
    for (const [at, { kind, place }] of turn.entries()) {
      const site = generateSite(seed);
      let last = before.grade.score ?? 0;
      // One kind of each seed is added repeatedly.
      for (let nth = 0; nth < (at === 0 ? doses : 1); nth++) {
        const planted = plant(site, kind, place, seed + nth);
        if (!planted) break;
        const { grade } = await exploreSite(site);
        if (nth === 0) {
          const found = grade.frictions.some((friction) => names(friction, planted));
          const tally = recall.get(`${kind} ${place}`) ?? { planted: 0, found: 0, missed: [] };
          recall.set(`${kind} ${place}`, tally);
          tally.planted++;
          if (found) tally.found++;
          else tally.missed.push(`seed ${seed} ${site.markup} ${site.pages.size} ${planted.path}`);
        }
        falls.added++;
        const score = grade.score ?? 0;
        if (score < last) falls.fell++;
        else falls.flat.push(`seed ${seed} ${kind} ${place} ${nth + 1}: ${last} → ${score}`);
        last = score;
      }
    }
  };
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let seed = jobs.shift(); seed !== undefined; seed = jobs.shift()) await work(seed);
    }),
  );
  return { recall, falls, clean: clean.sort((a, b) => a.seed - b.seed) };
}

const percent = (part: number, of: number) => (of === 0 ? "–" : `${Math.round((1000 * part) / of) / 10} %`);

function printRecall({ recall, falls, clean }: Awaited<ReturnType<typeof measureRecall>>, verbose: boolean): void {
  const total = (place: Place) =>
    [...recall]
      .filter(([key]) => key.endsWith(` ${place}`))
      .reduce((sum, [, { planted, found }]) => ({ planted: sum.planted + planted, found: sum.found + found }), {
        planted: 0,
        found: 0,
      });
  for (const [key, { planted, found, missed }] of [...recall].sort()) {
    console.log(`${key.padEnd(34)} ${String(found).padStart(4)} of ${planted}`);
    if (verbose) for (const each of missed.slice(0, 4)) console.log(`    missed: ${each}`);
  }
  for (const place of places) {
    const { planted, found } = total(place);
    console.log(`Recall, ${place}: ${percent(found, planted)} (${found} of ${planted})`);
  }
  const inventions = clean.flatMap(({ seed, inventions: all }) => all.map((one) => `seed ${seed}: ${one}`));
  console.log(`Inventions of medium or higher on clean sites: ${(inventions.length / clean.length).toFixed(3)} a site`);
  for (const each of inventions.slice(0, verbose ? 20 : 3)) console.log(`    ${each}`);
  console.log(
    `Score falls with an added defect: ${percent(falls.fell, falls.added)} (${falls.fell} of ${falls.added})`,
  );
  if (verbose) for (const each of falls.flat.slice(0, 30)) console.log(`    ${each}`);
  const times = clean.map(({ ms }) => ms).sort((a, b) => a - b);
  console.log(`Clean session: median ${times[times.length >> 1]} ms, longest ${times.at(-1)} ms`);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "50" },
      verbose: { type: "boolean", default: false },
      only: { type: "string" },
      goals: { type: "boolean", default: false },
      removal: { type: "boolean", default: false },
      degrade: { type: "boolean", default: false },
      gates: { type: "boolean", default: false },
      count: { type: "string", default: "20000" },
      gains: { type: "boolean", default: false },
    },
  });
  if (values.goals)
    for (const name of [...goalFiles, ...(existsSync(fetchedFolder) ? fetchedGoalFiles : [])].filter(
      (each) => (values.only ?? each) === each,
    )) {
      const goals = readGoals(name);
      const located = await locate(goals);
      printLocated(name, located, values.verbose && (name === "tuning" || name === "field"));
      if (values.removal)
        printRemoval(located, await measureRemoval(goals.filter(({ answers }) => answers.length > 0)));
    }
  else if (values.gates) printGates(Number(values.count));
  else if (values.gains) printGains(await measureGains(Number(values.seeds)));
  else if (values.degrade) printDegradation(await measureDegradation());
  else {
    const only = values.only?.split(",") as DefectKind[] | undefined;
    printRecall(await measureRecall(Number(values.seeds), only), values.verbose);
  }
}
