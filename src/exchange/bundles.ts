import { frequencyProblem } from "../cron.ts";
import { badRequest } from "../errors.ts";
import { templateVarsOf } from "../prompts/template.ts";
import type { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { type Line, linesOf } from "./lines.ts";
import { findReserved, labelOf, type RowType, rowTypes } from "./rows.ts";

/** Limit of a run with its events, stored in one transaction. An agent may report up to 64 MiB per attempt, over a few attempts. */
const maxBundleBytes = 512 * 1024 * 1024;

type Row = Line["row"];
/** Rows stored together: a single row, or a run with everything that belongs to it. */
export type Bundle = Line[];

/** Yields the rows of a file in bundles; the last one only after the whole file was validated. Throws bad_request with the line number. */
export function* bundlesOf(file: string): Generator<Bundle> {
  const seen = new Set<string>();
  /** Baselines of prompts, checked at the end because prompts come before evaluations. */
  const baselines: [line: number, id: unknown][] = [];
  let bundle: Bundle = [];
  let bytes = 0;
  for (const line of linesOf(file)) {
    const { n, type, row } = line;
    const bad = (why: string) => badRequest(`line ${n}: ${why}`);
    const before = bundle.at(-1);
    if (before && rowTypes.indexOf(type) < rowTypes.indexOf(before.type) && type !== "run")
      throw bad(`${labelOf(type)} rows must come before ${labelOf(before.type)} rows`);
    if (rowTypes.indexOf(type) <= rowTypes.indexOf("run")) {
      checkBundle(bundle);
      if (before) yield bundle;
      bundle = [line];
      bytes = 0;
    } else {
      if (bundle[0]?.type !== "run") throw bad(`${labelOf(type)} rows must come after their run`);
      bundle.push(line);
    }
    for (const key of keysOf(line)) {
      if (seen.has(`${type} ${key}`)) throw bad(`the ${labelOf(type)} ${key} appears twice`);
      seen.add(`${type} ${key}`);
    }
    bytes += line.bytes;
    if (bytes > maxBundleBytes) throw bad(`the run is larger than ${maxBundleBytes / 1024 / 1024} MiB`);
    if (type === "event" && before?.type === "event" && !comesAfter(row, before.row))
      throw bad("the events of a run must be in order");
    checkReferences(line, seen);
    if (type === "prompt" && row.baselineRequestId != null) baselines.push([n, row.baselineRequestId]);
  }
  checkBundle(bundle);
  for (const [n, id] of baselines)
    if (!seen.has(`eval_request ${id}`)) throw badRequest(`line ${n}: its baseline ${id} is not in the file`);
  if (bundle.length > 0) yield bundle;
}

/** The unique keys of a row. Events need none: their order is checked. */
function keysOf({ type, row }: Line): unknown[] {
  if (type === "named_page") return [`${row.promptId} ${row.page}`];
  if (type === "artifact") return [`${row.runId} ${row.attempt} ${row.name}`];
  if (type === "reach") return [row.reportId];
  if (type === "event") return [];
  if (type === "archive") return [row.id, row.digest];
  return [row.id, ...(type === "report" ? [row.slug] : []), ...(type === "gate" ? [row.headRequestId] : [])];
}

const comesAfter = (a: Row, b: Row) =>
  Number(a.attempt) - Number(b.attempt) > 0 || (a.attempt === b.attempt && Number(a.seq) > Number(b.seq));

/** Checks a row and its references to earlier rows. Throws bad_request with the line number. */
function checkReferences({ n, type, row }: Line, seen: Set<string>): void {
  const bad = (why: string) => badRequest(`line ${n}: ${why}`);
  const needs = (what: RowType, id: unknown) => {
    if (id !== null && !seen.has(`${what} ${id}`))
      throw bad(`its ${labelOf(what)} ${id} must come earlier in the file`);
  };
  if (type === "prompt") {
    needs("provider", row.targetProviderId ?? null);
    const { archive = null, skills } = (row.workspace ?? {}) as WorkspaceSetup;
    needs("archive", archive);
    needs("archive", skills?.archive ?? null);
    const problem = typeof row.frequency === "string" ? frequencyProblem(row.frequency) : null;
    if (problem !== null) throw bad(`frequency: ${problem}`);
    const vars = templateVarsOf(String(row.text), (row.endGoal ?? null) as string | null);
    if (!Bun.deepEquals(vars, row.templateVars ?? null))
      throw bad("templateVars must match the variables in text and endGoal");
  }
  if (type === "artifact" && String(row.name).endsWith(".webp") && !String(row.data).startsWith("UklGR"))
    throw bad("data must be a WebP image");
  if (type === "archive") {
    const content = Buffer.from(String(row.data), "base64");
    if (content.length !== row.bytes || new Bun.CryptoHasher("sha256").update(content).digest("hex") !== row.digest)
      throw bad("bytes and digest must match the data");
  }
  if ("promptId" in row) needs("prompt", row.promptId);
  if (type === "gate")
    for (const target of [row, ...((row.others ?? []) as Row[])]) {
      needs("prompt", target.promptId);
      for (const id of [target.headRequestId, target.baseRequestId ?? null]) needs("eval_request", id);
    }
  if (type === "field_report") needs("field_friction", row.frictionId);
  if (type === "fix") for (const id of [row.beforeId, row.afterId]) needs("eval_request", id);
  if (type === "run") needs("eval_request", row.evalRequestId);
  if (type === "run" || type === "regrade") {
    const mustHave = ["failed", "superseded", "cancelled"].includes(String(row.status));
    if ((row.failureCause != null) !== mustHave || (row.failureDetail != null) !== mustHave)
      throw bad(`a ${row.status} ${labelOf(type)} must ${mustHave ? "" : "not "}have failureCause and failureDetail`);
  }
  const end = { run: "completedAt", gate: "completedAt", regrade: "completedAt" }[type as string];
  if (end !== undefined && row[end] == null) throw bad(`an unfinished ${labelOf(type)} cannot be imported`);
  if (type === "gate" && row.reason == null) throw bad("a gate must have a reason");
  const reserved = type === "event" ? findReserved(row) : undefined;
  if (reserved !== undefined) throw bad(`${reserved} is not allowed in the data of an event`);
  const { costUsd = null } = row.type === "usage" ? (row.data as { costUsd?: unknown }) : {};
  if (costUsd !== null && !(typeof costUsd === "number" && costUsd >= 0))
    throw bad("costUsd must be a number of 0 or more");
  if (type === "report" && (row.score == null) !== (row.nullNotice != null))
    throw bad("set nullNotice exactly when score is null");
  if (type === "grading" && row.hash !== (row.grade as { methodology: { hash: string } }).methodology.hash)
    throw bad("hash must match the methodology in its grade");
}

/** Checks that the rows of a run are consistent with each other. Throws bad_request with the line number. */
function checkBundle(bundle: Bundle): void {
  const [head] = bundle;
  if (head?.type !== "run") return;
  const rowsOf = (type: RowType) => bundle.filter((line) => line.type === type);
  const [report, second] = rowsOf("report");
  const bad = ({ n }: Line, why: string) => badRequest(`line ${n}: ${why}`);
  if (second) throw bad(second, "the run has more than one report");
  if ((head.row.status === "completed") !== (report !== undefined))
    throw bad(head, "only a completed run has a report, and it must have one");
  const expected: Record<string, unknown> = {
    runId: head.row.id,
    promptId: head.row.promptId,
    reportId: report?.row.id,
  };
  for (const line of bundle.slice(1))
    for (const [name, value] of Object.entries(expected))
      if (name in line.row && line.row[name] !== value) throw bad(line, `${name} must match the rows above it`);
  const points = new Set(rowsOf("friction_point").map(({ row }) => row.id));
  for (const line of rowsOf("recommendation"))
    for (const id of line.row.frictionIds as string[])
      if (!points.has(id)) throw bad(line, `its friction point ${id} is missing`);
  const gradings = rowsOf("grading");
  if (report?.row.gradingId != null && !gradings.some(({ row }) => row.id === report.row.gradingId))
    throw bad(report, `its grading ${report.row.gradingId} is missing`);
  const uniqueKeys: [RowType, (row: Row) => unknown][] = [
    ["friction_point", (row) => row.fingerprint],
    ["recommendation", (row) => row.priority],
    ["grading", (row) => `${row.hash} ${row.repeat}`],
  ];
  for (const [type, keyOf] of uniqueKeys) {
    const keys = new Set<unknown>();
    for (const line of rowsOf(type)) {
      const key = keyOf(line.row);
      if (keys.has(key)) throw bad(line, `the ${labelOf(type)} ${key} appears twice`);
      keys.add(key);
    }
  }
}
