import type { EventType, Outcome } from "../agents/agent.ts";
import { oneLine } from "../grading/text.ts";
import { formatNumber, humanize, outcomeLabels } from "./labels.ts";

const maxSummaryChars = 220;

/** A one-line summary of an event. Its fields come from the target or the agent, and are not trusted. */
export function eventSummary(type: EventType, fields: Record<string, unknown>): string {
  const summary = oneLine(textOf(type, fields), maxSummaryChars);
  const withoutLastSeparator = summary.replace(/ ·$/, "");
  return withoutLastSeparator || "empty";
}

function textOf(type: EventType, fields: Record<string, unknown>): string {
  const text = (name: string) =>
    typeof fields[name] === "string" || typeof fields[name] === "number" ? String(fields[name]) : "";
  switch (type) {
    case "thought":
    case "message":
      return text("text");
    case "tool_call":
      return `${text("tool")}${text("ownName") && ` (${text("ownName")})`} · ${describeFields(fields.input)}`;
    case "tool_result":
      return `${text("tool")} ${resultText(fields)} · ${describeFields(fields.output)}`;
    case "http":
      return `${text("method")} ${text("url")} → ${text("status") || "no response"}`;
    case "usage":
      return `${text("model")} · ${text("inputTokens")} input tokens, ${text("outputTokens")} output tokens`;
    case "error":
      return `${text("where")}: ${text("message")}`;
    case "interruption":
      return text("question");
    case "limit":
      return `${humanize(text("limit"))} limit ${fields.near === true ? "near" : "reached"}: ${amountText(fields)}`;
    case "milestone":
      return fields.name === null
        ? `Unreadable milestone · ${JSON.stringify(fields.raw)}`
        : `${humanize(text("name"))} · ${describeFields(fields.detail)}`;
    case "end":
      return `${outcomeLabels[text("outcome") as Outcome] ?? text("outcome")}: ${text("reason")}`;
  }
}

/** The known parts of a call's result. */
function resultText({ ok, output }: Record<string, unknown>): string {
  const { exitCode } = (output ?? {}) as Record<string, unknown>;
  const knownResult = ok ? "succeeded" : "failed";
  const result = ok === null ? "has an unknown result" : knownResult;
  return exitCode === null ? `${result}, exit code unknown` : result;
}

/** "300 s", "2 USD", "5,242,880 bytes". */
function amountText({ value, unit }: Record<string, unknown>): string {
  if (typeof value !== "number") return "";
  return unit === "ms" ? `${formatNumber(value / 1000)} s` : `${formatNumber(value)} ${unit ?? ""}`;
}

/** Fields whose values are clear without the name of the field. */
const selfEvident = new Set("agent command goal message query stdout summary text title url".split(" "));

/** The first fields of a record as `name value`, or as only the value. Empty fields are left out. */
function describeFields(record: unknown): string {
  const fields = record !== null && typeof record === "object" ? Object.entries(record) : [];
  return fields
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .filter(([, value]) => !Array.isArray(value) || value.length > 0)
    .map(([name, value]) => `${selfEvident.has(name) ? "" : `${name} `}${valueText(value).slice(0, 200)}`)
    .join(" · ");
}

function valueText(value: unknown): string {
  if (typeof value === "string") return value;
  const isList = Array.isArray(value) && value.every((each) => typeof each === "string");
  return isList ? value.join(", ") : JSON.stringify(value);
}

/** Whether an event reports a failure: an error, an interruption, or a failed tool call or request. */
export function hasEventFailed(type: EventType, fields: Record<string, unknown>): boolean {
  const { ok, status } = fields;
  const { exitCode, status: responseStatus = 0 } = (fields.output ?? {}) as Record<string, unknown>;
  if (type === "http") return typeof status !== "number" || status >= 400;
  if (type === "tool_result") return ok === false || Boolean(exitCode) || Number(responseStatus) >= 400;
  return type === "error" || type === "interruption";
}
