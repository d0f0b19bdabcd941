import { checkOfLanguage } from "../../src/agents/explorer/samples.ts";
import { hygiene } from "../../src/grading/findings/catalogue.ts";
import { type FindingKind, findingKinds } from "../../src/grading/findings/finding-kinds.ts";
import { kindIdOf, sampleOf } from "../truth/foreign/kinds.ts";
import { type Measurements, readMeasurements } from "../truth/foreign/measurements.ts";
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

function recallOf({ kinds }: Measurements, defects: string[]): Recall | null {
  const tallies = defects.flatMap((defect) => kinds[defect] ?? []);
  const sum = (key: "found" | "planted") => tallies.reduce((total, tally) => total + tally[key], 0);
  const [date] = tallies.map((tally) => tally.date).sort();
  return date === undefined ? null : { found: sum("found"), planted: sum("planted"), date };
}

const cellOf = (recall: Recall | null) =>
  recall === null
    ? "not measured"
    : `${recall.found} of ${recall.planted} (${Math.round((100 * recall.found) / recall.planted)}%)`;

/** All kinds of findings of the explorer, with their measured recall and false findings. */
export function findingsTables(measurements: Measurements): string {
  const { kinds, clean } = measurements;
  const rows = findingKinds.map((kind) => ({
    kind,
    recall: recallOf(
      measurements,
      Object.keys(kinds).filter((defect) => kindIdOf(defect) === kind.id && isChecked(defect)),
    ),
  }));
  const tableOf = (wanted: (recall: Recall | null) => boolean) =>
    toTable(
      ["Finding", "Severity", "What is wrong", "Found", "False findings", "Measured"],
      rows
        .filter(({ recall }) => wanted(recall))
        .map(({ kind, recall }) => [...cellsOf(kind), cellOf(recall), falseFindings(kind), recall?.date ?? ""]),
    );
  const falseFindings = ({ id }: FindingKind) => (clean === null ? "not measured" : String(clean.kinds[id] ?? 0));
  const isReliable = ({ found, planted }: Recall) => found / planted >= reliableShare;
  return [
    "### Found\n\n",
    tableOf((recall) => recall !== null && isReliable(recall)),
    "\n### Sometimes found\n\n",
    tableOf((recall) => recall !== null && !isReliable(recall)),
    "\n### Not measured\n\n",
    tableOf((recall) => recall === null),
    clean === null ? "" : `\nFalse findings are those on ${clean.sites} sites without defects (${clean.date}).\n`,
    `\nThe conventions of a site, by what is wrong: ${[...hygiene.values()].join(", ")}.\n`,
  ].join("");
}

const cellsOf = ({ title, severity, meaning }: FindingKind) => [title, severity, meaning];

/** What is checked of samples in each language, with the measured recall. */
export const languagesTable = (measurements: Measurements): string =>
  toTable(
    ["Language", "Missing bracket or quote", "Other syntax errors"],
    Object.entries(languages).map(([language, name]) => [
      name,
      ...["bracket", "grammar"].map((fault) => {
        const defect = `${fault}_${language}`;
        return isChecked(defect) ? cellOf(recallOf(measurements, [defect])) : "not checked";
      }),
    ]),
  );

/** Writes the tables into the docs page of the explorer. */
export async function writeFindings(): Promise<void> {
  const measurements = await readMeasurements();
  const file = docFile("explorer.md");
  const text = withPart(await Bun.file(file).text(), "findings", findingsTables(measurements));
  await Bun.write(file, withPart(text, "languages", languagesTable(measurements)));
}
