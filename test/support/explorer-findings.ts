import { checkOfLanguage } from "../../src/agents/explorer/samples.ts";
import { conventions } from "../../src/grading/findings/catalogue.ts";
import { findingKinds } from "../../src/grading/findings/finding-kinds.ts";
import { kindIdOf, sampleOf, withoutRule } from "../truth/foreign/kinds.ts";
import { type Figures, newestFigures, readMeasurements } from "../truth/foreign/measurements.ts";
import { docFile, toTable, withPart } from "./generated.ts";

type Recall = { found: number; planted: number; date: string };

/** A kind that is found less often than this is only sometimes found. */
const reliableShare = 0.8;

const languages: Record<string, string> = {
  json: "JSON",
  js: "JavaScript",
  ts: "TypeScript",
  bash: "Shell",
  yaml: "YAML",
  toml: "TOML",
  python: "Python",
  go: "Go",
  java: "Java",
  rust: "Rust",
  c: "C",
  cpp: "C++",
  php: "PHP",
  csharp: "C#",
  ruby: "Ruby",
  graphql: "GraphQL",
  protobuf: "Protocol Buffers",
  hcl: "HCL",
};

/** Whether the explorer checks what is wrong with the planted sample. */
function isChecked(defect: string): boolean {
  const sample = sampleOf(defect);
  const check = sample && checkOfLanguage(sample.language);
  return sample === null || check === "grammar" || (check === "brackets" && sample.fault === "bracket");
}

function recallOf({ kinds }: Figures, defects: string[]): Recall | null {
  const tallies = defects.flatMap((defect) => kinds[defect] ?? []);
  const sum = (key: "found" | "planted") => tallies.reduce((total, tally) => total + tally[key], 0);
  const [date] = tallies.map((tally) => tally.date).sort();
  return date === undefined ? null : { found: sum("found"), planted: sum("planted"), date };
}

const cellOf = (recall: Recall | null) => (recall === null ? "not measured" : `${recall.found} of ${recall.planted}`);

/** All kinds of findings of the explorer, with their measured recall and false findings. */
export function findingsTables(figures: Figures): string {
  const { kinds, clean } = figures;
  const rows = findingKinds.map((kind) => ({
    kind,
    recall: recallOf(
      figures,
      Object.keys(kinds).filter((defect) => kindIdOf(defect) === kind.id && isChecked(defect)),
    ),
  }));
  const tableOf = (wanted: (recall: Recall | null) => boolean) =>
    toTable(
      ["Finding", "Severity", "What is wrong", "Found", "False findings"],
      rows
        .filter(({ recall }) => wanted(recall))
        .map(({ kind: { id, title, severity, meaning }, recall }) => {
          return [title, severity, meaning, cellOf(recall), clean === null ? "" : String(clean.kinds[id] ?? 0)];
        }),
    );
  const isReliable = ({ found, planted }: Recall) => found / planted >= reliableShare;
  return [
    `${describeMeasurement(figures)}\n`,
    "### Found\n",
    tableOf((recall) => recall !== null && isReliable(recall)),
    "### Sometimes found\n",
    tableOf((recall) => recall !== null && !isReliable(recall)),
    "### Not measured\n",
    tableOf((recall) => recall === null),
    `The explorer has no rule for ${Object.values(withoutRule).join(", ")}.\n`,
    `The conventions of a site, each by what is wrong: ${[...conventions.values()].join(", ")}.\n`,
  ].join("\n");
}

/** How many defects were planted, how many clean sites were tested, and when. */
function describeMeasurement({ kinds, clean }: Figures): string {
  const tallies = Object.values(kinds);
  const planted = tallies.reduce((sum, tally) => sum + tally.planted, 0);
  const dates = [...tallies.map(({ date }) => date), ...(clean ? [clean.date] : [])].sort();
  const [first, last] = [dates[0], dates.at(-1)];
  const time = first === last ? `on ${first}` : `from ${first} to ${last}`;
  const falseFindings = clean === null ? "" : ` *False findings* are those on ${clean.sites} sites without defects.`;
  return `Measured ${time}, with ${planted} defects, each planted in a site of its own that a generator made. Other sites of the same generator were read while the rules were written. *Found* says how many were reported.${falseFindings}`;
}

/** What is checked of samples in each language, with the measured recall. */
export const languagesTable = (figures: Figures): string =>
  toTable(
    ["Language", "Missing bracket or quote", "Other syntax errors"],
    Object.entries(languages).map(([language, name]) => [
      name,
      ...["bracket", "grammar"].map((fault) => {
        const defect = `${fault}_${language}`;
        return isChecked(defect) ? cellOf(recallOf(figures, [defect])) : "not checked";
      }),
    ]),
  );

/** Writes the tables into the docs page of the explorer. */
export async function writeFindings(): Promise<void> {
  const figures = newestFigures(await readMeasurements());
  const file = docFile("explorer.md");
  const text = withPart(await Bun.file(file).text(), "findings", findingsTables(figures));
  await Bun.write(file, withPart(text, "languages", languagesTable(figures)));
}
