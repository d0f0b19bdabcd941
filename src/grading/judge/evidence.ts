import type { SessionEvent } from "../../agents/agent.ts";
import { hasSucceeded } from "../events.ts";
import { normalizedLine, oneLine, textsIn } from "../text.ts";

/** Tools whose results come from the product or the machine. The results of other tools come from a page or the agent. */
export const provingTools: readonly string[] = ["run_command", "http_request", "browse"];
/** Tools with which the agent reports about itself. */
const speakingTools = ["ask_human", "report_friction", "finish"];

/** Shorter quotes occur by chance. */
export const minQuoteChars = 4;
/** Maximum length of a session as a judge reads it, and of its events by their rank, in characters. */
const maxChars = 90_000;
const maxEventChars = { important: 1500, other: 500 };
/** Ranks below this one are important. */
const firstOtherRank = 2;
const lastEvents = 20;
const maxParts = 12;

/** The ends of lines and clauses, and the ends of sentences before another sentence. `e.g.` ends no sentence. */
const partEnd = /\n+|;\s+|(?<=[.!?])(?<!\b(?:e\.g|i\.e|etc|vs)\.)\s+(?=[\p{Lu}\p{N}"“'`*-])/u;
const listMarker = /^\s*([-*•]|\d+[.)])\s+/;

/** The parts of an end goal: its lines and sentences, at most twelve. The last one then holds all others. */
export function partsOf(goal: string): string[] {
  const parts = goal
    .split(partEnd)
    .map((part) => oneLine(part.replace(listMarker, ""), 600))
    .filter((part) => /[\p{L}\p{N}]/u.test(part));
  return parts.length <= maxParts ? parts : [...parts.slice(0, maxParts - 1), parts.slice(maxParts - 1).join(" ")];
}

/** The source of an event's text: the world (what happened), the agent, or a page that it read. */
export function textSourceOf(
  event: SessionEvent,
  toolOf: (id: string) => string | undefined,
): "world" | "agent" | "page" {
  const byTool = (tool: string) => {
    if (provingTools.includes(tool)) return "world";
    return speakingTools.includes(tool) ? "agent" : "page";
  };
  if (event.type === "tool_result") return byTool(event.tool);
  if (event.type === "http") return event.id === null ? "world" : byTool(toolOf(event.id) ?? "");
  return event.type === "error" || event.type === "limit" || event.type === "interruption" ? "world" : "agent";
}

/** Every text in an event, one line each, plus the whole event as shown to a judge. */
export const gatherText = (event: SessionEvent): string =>
  [...textsIn(fieldsOf(event)).map(normalizedLine), toLine(event, Number.POSITIVE_INFINITY)].join("\n");

const textCache = new WeakMap<SessionEvent, string>();

/** What `gatherText` returns, kept with the event: claims cite the same events again and again. */
export function textOf(event: SessionEvent): string {
  const text = textCache.get(event) ?? gatherText(event);
  textCache.set(event, text);
  return text;
}

/** The fields that only events of this type have. */
function fieldsOf(event: SessionEvent): Record<string, unknown> {
  const common = ["seq", "at", "tMs", "source", "type"];
  return Object.fromEntries(Object.entries(event).filter(([name]) => !common.includes(name)));
}

/** One event as one line of at most four times `chars`, with texts shortened in the middle to `chars`. */
function toLine(event: SessionEvent, chars: number): string {
  const shorten = (text: string) => {
    const textOnOneLine = normalizedLine(text);
    if (textOnOneLine.length <= chars) return textOnOneLine;
    const tail = Math.floor(chars / 3);
    return `${textOnOneLine.slice(0, chars - tail)} […${textOnOneLine.length - chars} characters omitted…] ${textOnOneLine.slice(-tail)}`;
  };
  const json = JSON.stringify(fieldsOf(event), (_, value) => (typeof value === "string" ? shorten(value) : value));
  const line = normalizedLine(json);
  return `[${event.seq}] ${event.type} ${line.length > 4 * chars ? `${line.slice(0, 4 * chars)}…` : line}`;
}

/** Priority to keep, 0 first: failures, the agent's last actions, other actions and responses, pages, thoughts. */
function rankOf(event: SessionEvent, isLate: boolean): number {
  if (isLate) return 0;
  switch (event.type) {
    case "end":
    case "error":
    case "limit":
    case "interruption":
      return 0;
    case "tool_call":
      return speakingTools.includes(event.tool) ? 0 : 1;
    case "tool_result":
      if (hasSucceeded(event) === false) return 0;
      return provingTools.includes(event.tool) ? 1 : 2;
    case "http":
      return event.status === null || event.status >= 400 ? 0 : 2;
    default:
      return 3;
  }
}

/** The events of a session for a judge, within a maximum length: the important ones stay, and omissions are marked. */
export function quoteSession(events: SessionEvent[]): string {
  // The live output of a command is repeated in its result.
  const shownEvents = events.filter(
    (event) => event.type !== "usage" && !(event.type === "message" && event.id !== undefined),
  );
  const ranked = shownEvents
    .map((event, i) => {
      const rank = rankOf(event, i >= shownEvents.length - lastEvents);
      const chars = rank < firstOtherRank ? maxEventChars.important : maxEventChars.other;
      return { seq: event.seq, rank, text: toLine(event, chars) };
    })
    .sort((a, b) => a.rank - b.rank || b.seq - a.seq);
  const textBySeq = new Map<number, string>();
  let chars = 0;
  for (const { seq, text } of ranked) {
    // A short event may fit where a long one didn't.
    if (chars + text.length > maxChars) continue;
    chars += text.length + 1;
    textBySeq.set(seq, text);
  }
  const lines: string[] = [];
  let omitted = 0;
  for (const { seq } of shownEvents) {
    const text = textBySeq.get(seq);
    if (text === undefined) omitted++;
    else {
      if (omitted > 0) lines.push(`(${omitted} events omitted)`);
      omitted = 0;
      lines.push(text);
    }
  }
  if (omitted > 0) lines.push(`(${omitted} events omitted)`);
  return lines.join("\n");
}
