import { checkOrgSettings } from "../auth/orgs.ts";
import { frequencyProblem } from "../cron.ts";
import type { StoredGrade } from "../db/tables/reports.ts";
import { AppError, badRequest } from "../errors.ts";
import { templateVarsOf } from "../prompts/template.ts";
import type { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { type Line, linesOf } from "./lines.ts";
import { columnsOf, findReservedField, isPartOfRun, keyOf, labelOf, type RowType, rowTypes } from "./rows.ts";

/** Limit of a run with its events, which are stored in one transaction. An agent may report up to 64 MiB per attempt, over a few attempts. */
const maxBundleBytes = 512 * 1024 * 1024;

export type ImportedRow = Line["row"];
/** Rows stored together: a single row, or a run with everything that belongs to it. */
export type Bundle = Line[];

const invalidLine = ({ lineNumber }: Line, reason: string) => badRequest(`Line ${lineNumber}: ${reason}.`);

/** Yields the rows of a file in bundles; the last one only after the whole file was validated. Throws bad_request with the line number. */
export function* bundlesOf(file: string): Generator<Bundle> {
  const keys = new Set<string>();
  /** Baselines of prompts, checked at the end because prompts come before evaluations. */
  const baselines: [line: Line, id: unknown][] = [];
  let bundle: Bundle = [];
  let bytes = 0;
  for (const line of linesOf(file)) {
    const { type, row } = line;
    const previous = bundle.at(-1);
    if (previous) checkOrder(line, previous);
    if (isPartOfRun(type)) {
      if (bundle[0]?.type !== "run") throw invalidLine(line, `${labelOf(type)} rows must come after their run`);
      bundle.push(line);
    } else {
      checkBundle(bundle);
      if (previous) yield bundle;
      bundle = [line];
      bytes = 0;
    }
    for (const key of keysOf(line)) {
      if (keys.has(`${type} ${key}`)) throw invalidLine(line, `the ${labelOf(type)} ${key} appears twice`);
      keys.add(`${type} ${key}`);
    }
    bytes += line.bytes;
    if (bytes > maxBundleBytes) throw invalidLine(line, `the run is larger than ${maxBundleBytes / 1024 / 1024} MiB`);
    checkRow(line, keys);
    if (type === "prompt" && row.baselineRequestId != null) baselines.push([line, row.baselineRequestId]);
  }
  checkBundle(bundle);
  for (const [line, id] of baselines)
    if (!keys.has(`eval_request ${id}`)) throw invalidLine(line, `its baseline ${id} is not in the file`);
  if (bundle.length > 0) yield bundle;
}

/** The settings of an organization in a file. */
export const toSettings = (row: ImportedRow) =>
  Object.fromEntries(columnsOf("organization").map(([name]) => [name, row[name]]));

/** Checks that a row may follow the one before it. */
function checkOrder(line: Line, previous: Line): void {
  const { type, row } = line;
  // A run may follow the parts of another run.
  if (type !== "run" && rowTypes.indexOf(type) < rowTypes.indexOf(previous.type))
    throw invalidLine(line, `${labelOf(type)} rows must come before ${labelOf(previous.type)} rows`);
  if (type !== "event" || previous.type !== "event") return;
  const attempts = Number(row.attempt) - Number(previous.row.attempt);
  if (attempts < 0 || (attempts === 0 && Number(row.seq) <= Number(previous.row.seq)))
    throw invalidLine(line, "the events of a run must be in order");
}

/** Columns that are unique as well as the ID, or in its place. */
const uniqueColumns: Partial<Record<RowType, string[]>> = {
  // Their order is checked.
  event: [],
  reach: ["reportId"],
  share_link: ["id", "tokenHash"],
  archive: ["id", "digest"],
  report: ["id", "slug"],
  gate: ["id", "headRequestId"],
};

/** The unique keys of a row. */
function keysOf({ type, row }: Line): unknown[] {
  if (type === "organization") return ["settings"];
  const columns = uniqueColumns[type];
  if (columns) return columns.map((name) => row[name]);
  // The file doesn't name the organization, although the key of some tables begins with it.
  const composite = keyOf(type).filter(([name]) => name !== "orgId");
  return composite.length > 0 ? [composite.map(([name]) => row[name]).join(" ")] : [row.id];
}

/** The columns that refer to earlier rows, each with the type of those rows. */
const references: Record<string, RowType> = {
  promptId: "prompt",
  targetProviderId: "provider",
  evalRequestId: "eval_request",
  headRequestId: "eval_request",
  baseRequestId: "eval_request",
  beforeId: "eval_request",
  afterId: "eval_request",
  frictionId: "field_friction",
};

type Condition = (row: ImportedRow) => boolean;

const hasEnded: Condition = ({ completedAt }) => completedAt !== null;

const hasEvaluationOrReason: Condition = ({ outcome, evalRequestId, reason }) =>
  outcome === "ran" ? evalRequestId !== null : evalRequestId === null && reason !== null;

const isArchiveIntact: Condition = ({ data, bytes, digest }) => {
  const content = Buffer.from(String(data), "base64");
  return content.length === bytes && new Bun.CryptoHasher("sha256").update(content).digest("hex") === digest;
};

/** Every WebP image begins with `RIFF`, which is `UklGR` in base64. */
const isImageIfWebp: Condition = ({ name, data }) =>
  !String(name).endsWith(".webp") || String(data).startsWith("UklGR");

type UsageData = { costUsd?: unknown; estimate?: { costUsd?: unknown } };

const hasValidCosts: Condition = ({ type, data }) => {
  const { costUsd, estimate } = type === "usage" ? (data as UsageData) : {};
  return [costUsd, estimate?.costUsd].every((usd) => usd == null || (typeof usd === "number" && usd >= 0));
};

const hasHashOfGrade: Condition = ({ hash, grade }) => hash === (grade as StoredGrade).methodology.hash;

const hasScoreOrNotice: Condition = ({ score, nullNotice }) => (score === null) !== (nullNotice === null);

/** Conditions that the schema of a row can't express, each with the problem of a row that doesn't meet it. */
const conditions: [type: RowType, isMet: Condition, problem: string][] = [
  ["archive", isArchiveIntact, "bytes and digest must match the data"],
  ["artifact", isImageIfWebp, "data must be a WebP image"],
  [
    "destination",
    ({ kind, url }) => (kind === "email") === (url === null),
    "only a destination of kind email has no url",
  ],
  ["event", hasValidCosts, "costUsd must be a number of 0 or more"],
  ["gate", hasEnded, "an unfinished gate cannot be imported"],
  ["gate", ({ reason }) => reason !== null, "a gate must have a reason"],
  ["grading", hasHashOfGrade, "hash must match the methodology in its grade"],
  ["job", hasEnded, "an unfinished job cannot be imported"],
  ["regrade", hasEnded, "an unfinished regrade cannot be imported"],
  ["report", hasScoreOrNotice, "set nullNotice exactly when score is null"],
  ["run", hasEnded, "an unfinished run cannot be imported"],
  [
    "scheduled_evaluation",
    hasEvaluationOrReason,
    "a scheduled evaluation has an evaluation or a reason why it did not run",
  ],
  ["scheduled_evaluation", ({ outcome }) => outcome !== "waiting", "a waiting evaluation cannot be imported"],
];

/** Checks what the schema of a row can't express, such as its references to earlier rows. Throws bad_request with the line number. */
function checkRow(line: Line, keys: Set<string>): void {
  const { type, row } = line;
  for (const [rowType, id] of referencesOf(line))
    if (id != null && !keys.has(`${rowType} ${id}`))
      throw invalidLine(line, `its ${labelOf(rowType)} ${id} must come earlier in the file`);
  if (type === "organization") checkSettings(line);
  if (type === "prompt") checkPrompt(line);
  if (type === "run") checkFailure(line, ["failureCause", "failureDetail", "failureCode"]);
  if (type === "regrade") checkFailure(line, ["failureCause", "failureDetail"]);
  const reserved = type === "event" ? findReservedField(row) : undefined;
  if (reserved !== undefined) throw invalidLine(line, `${reserved} is not allowed in the data of an event`);
  for (const [rowType, isMet, problem] of conditions)
    if (rowType === type && !isMet(row)) throw invalidLine(line, problem);
}

/** The rows that a row refers to, each by its type and ID; without an ID (null or undefined), it refers to none. */
function referencesOf({ type, row }: Line): [type: RowType, id: unknown][] {
  const rows = type === "gate" ? [row, ...((row.others ?? []) as ImportedRow[])] : [row];
  const { archive, skills } = (type === "prompt" ? (row.workspace ?? {}) : {}) as WorkspaceSetup;
  return [
    ...rows.flatMap((each) =>
      Object.entries(references).map(([name, rowType]): [RowType, unknown] => [rowType, each[name]]),
    ),
    ["archive", archive],
    ["archive", skills?.archive],
  ];
}

function checkPrompt(line: Line): void {
  const { frequency, text, endGoal, templateVars } = line.row;
  const problem = typeof frequency === "string" ? frequencyProblem(frequency) : null;
  if (problem !== null) throw invalidLine(line, `frequency: ${problem}`);
  if (!Bun.deepEquals(templateVarsOf(String(text), endGoal as string | null), templateVars))
    throw invalidLine(line, "templateVars must match the variables in text and endGoal");
}

/** `fields`: the fields that a run or regrade has if, and only if, it failed. */
function checkFailure(line: Line, fields: string[]): void {
  const { type, row } = line;
  const isFailure = ["failed", "superseded", "cancelled"].includes(String(row.status));
  if (fields.some((field) => (row[field] !== null) !== isFailure))
    throw invalidLine(
      line,
      `a ${row.status} ${labelOf(type)} must ${isFailure ? "" : "not "}have ${fields.join(", ")}`,
    );
}

function checkSettings(line: Line): void {
  try {
    checkOrgSettings(toSettings(line.row));
  } catch (error) {
    throw error instanceof AppError ? invalidLine(line, error.detail.replace(/\.$/, "")) : error;
  }
}

/** Checks that the rows of a run are consistent with each other. Throws bad_request with the line number. */
function checkBundle(bundle: Bundle): void {
  const [runLine] = bundle;
  if (runLine?.type !== "run") return;
  const rowsOfType = (rowType: RowType) => bundle.filter(({ type }) => type === rowType);
  const [report, second] = rowsOfType("report");
  if (second) throw invalidLine(second, "the run has more than one report");
  if ((runLine.row.status === "completed") !== (report !== undefined))
    throw invalidLine(runLine, "only a completed run has a report, and it must have one");
  // `subject` is the run of a job, and `jobId` the job of an attempt.
  const expected: Record<string, unknown> = {
    runId: runLine.row.id,
    promptId: runLine.row.promptId,
    reportId: report?.row.id,
    subject: runLine.row.id,
    jobId: rowsOfType("job")[0]?.row.id,
  };
  for (const line of bundle.slice(1))
    for (const [name, value] of Object.entries(expected))
      if (name in line.row && line.row[name] !== value) throw invalidLine(line, `${name} must match the rows above it`);
  const frictionIds = new Set(rowsOfType("friction_point").map(({ row }) => row.id));
  for (const line of rowsOfType("recommendation"))
    for (const id of line.row.frictionIds as string[])
      if (!frictionIds.has(id)) throw invalidLine(line, `its friction point ${id} is missing`);
  const gradingLines = rowsOfType("grading");
  if (report?.row.gradingId != null && !gradingLines.some(({ row }) => row.id === report.row.gradingId))
    throw invalidLine(report, `its grading ${report.row.gradingId} is missing`);
  // These are unique within a run, in addition to the keys that are unique in the file.
  const keys: [RowType, (row: ImportedRow) => unknown][] = [
    ["friction_point", ({ fingerprint }) => fingerprint],
    ["recommendation", ({ priority }) => priority],
    ["grading", ({ hash, repeat }) => `${hash} ${repeat}`],
  ];
  for (const [type, toKey] of keys) {
    const earlier = new Set<unknown>();
    for (const line of rowsOfType(type)) {
      const key = toKey(line.row);
      if (earlier.has(key)) throw invalidLine(line, `the ${labelOf(type)} ${key} appears twice`);
      earlier.add(key);
    }
  }
}
