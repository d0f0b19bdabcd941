import type { Trace } from "./trace-schema.ts";

type Event = Trace["events"][number];

/** The thoughts, calls and results of an agent in one step. */
export type Turn = { events: Event[] };

/** A message with an `id` is the output of a tool call. */
const isAgentText = (event: Event) => event.type === "thought" || (event.type === "message" && !("id" in event));

/**
 * Groups consecutive events into turns: thoughts and model usage, the calls that follow, and everything that belongs to the calls. A turn ends when
 * the agent thinks again, or when it calls a tool after its earlier calls have returned.
 */
export function turnsOf(events: Event[]): Turn[] {
  const turns: Turn[] = [];
  let turn: Turn | undefined;
  let hasActed = false;
  let openCalls = 0;
  for (const event of events) {
    const { type } = event;
    const mayBegin = type === "tool_call" || type === "usage" || isAgentText(event);
    const isPreviousOver = hasActed && openCalls <= 0;
    if (turn === undefined || type === "end" || (mayBegin && isPreviousOver)) {
      turn = { events: [] };
      turns.push(turn);
      hasActed = false;
      openCalls = 0;
    }
    turn.events.push(event);
    hasActed ||= type === "tool_call" || type === "tool_result";
    if (type === "tool_call") openCalls++;
    if (type === "tool_result") openCalls--;
  }
  return turns;
}
