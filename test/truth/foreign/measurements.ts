/**
 * Counts of the planted defects of one kind. `lines` are the found ones that have a faulty line, `line` those of them whose
 * fix names it. `firstFix` counts fixes that come first, `fell` the lower scores.
 */
export type Tally = {
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
/** False findings: those of medium severity or more, and all of them by kind. */
export type Clean = { sites: number; findings: number; kinds: Record<string, number>; date: string };
/** Recall by kind of defect, and findings on clean sites: over all rounds, and of each round. */
export type Figures = { clean: Clean | null; kinds: Record<string, Tally> };
export type Measurements = Figures & { rounds: Record<string, Figures> };

const measurementsFile = new URL("../measurements.json", import.meta.url).pathname;
export const counts = ["planted", "found", "named", "line", "lines", "firstFix", "fell"] as const;
export const readMeasurements = async (): Promise<Measurements> => Bun.file(measurementsFile).json();

/** The figures of the newest round that measured each of them: rules may have been written after looking at older ones. */
export function newestFigures({ rounds }: Measurements): Figures {
  const figures = Object.values(rounds);
  return {
    clean: figures.findLast(({ clean }) => clean !== null)?.clean ?? null,
    kinds: Object.assign({}, ...figures.map(({ kinds }) => kinds)),
  };
}

/** Adds the figures of a round to the file, and prints its table. Kinds that were not measured keep their figures. */
export async function storeMeasurements(round: string, measured: Figures): Promise<void> {
  const { rounds: stored } = await readMeasurements();
  const before = stored[round] ?? { clean: null, kinds: {} };
  const merged: Record<string, Figures> = {
    ...stored,
    [round]: { clean: measured.clean ?? before.clean, kinds: { ...before.kinds, ...measured.kinds } },
  };
  await Bun.write(
    measurementsFile,
    `${JSON.stringify({ ...totalOf(Object.values(merged)), rounds: merged }, null, 2)}\n`,
  );
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
  return { clean: clean.length > 0 ? clean.reduce(addClean) : null, kinds };
}

const addClean = (a: Clean, b: Clean): Clean => ({
  sites: a.sites + b.sites,
  findings: a.findings + b.findings,
  kinds: Object.fromEntries(
    [...new Set([...Object.keys(a.kinds), ...Object.keys(b.kinds)])].map((kind) => [
      kind,
      (a.kinds[kind] ?? 0) + (b.kinds[kind] ?? 0),
    ]),
  ),
  date: [a.date, b.date].sort()[0]!,
});
