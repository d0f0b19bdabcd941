import { docFile, partOf, toTable, withPart } from "../support/generated.ts";

/** The cells of one measurement: name, evald, floor, evald / floor, target. */
export type Figure = [name: string, ours: string, floor: string, ratio: string, target: string];

const heading = ["Measurement", "evald", "Floor", "evald / floor", "Target", "Measured"];

/** A difference as a whole number: `+12`, `-3` or `0`. */
export const toSigned = (difference: number): string =>
  difference.toLocaleString("en", { signDisplay: "exceptZero", maximumFractionDigits: 0, useGrouping: false });

/** Measurements as a Markdown table. `measured` says when and where. */
export const toFigures = (figures: Figure[], measured: string): string =>
  toTable(
    heading,
    figures.map((figure) => [...figure, measured]),
  );

/** A table with new measurements: a row of the same name is replaced in its place, a new one is added, the others stay. */
export function withFigures(table: string, figures: Figure[], measured: string): string {
  const rowsOf = (text: string) => text.trimEnd().split("\n");
  const nameOf = (row: string) => row.split(" | ")[0] as string;
  const [head, rule, ...rows] = rowsOf(toFigures(figures, measured));
  const fresh = new Map(rows.map((row) => [nameOf(row), row]));
  const replaced = rowsOf(table)
    .slice(2)
    .map((row) => fresh.get(nameOf(row)) ?? row);
  const names = new Set(replaced.map(nameOf));
  return `${[head, rule, ...replaced, ...rows.filter((row) => !names.has(nameOf(row)))].join("\n")}\n`;
}

/** Writes measurements into the docs page of benchmarks; `isWhole`: in place of all that are there. */
export async function writeFigures(figures: Figure[], measured: string, isWhole: boolean): Promise<void> {
  const file = docFile("benchmarks.md");
  const text = await Bun.file(file).text();
  const table = isWhole ? toFigures(figures, measured) : withFigures(partOf(text, "figures"), figures, measured);
  await Bun.write(file, withPart(text, "figures", table));
}
