import type { Trace } from "./trace-schema.ts";

type Event = Trace["events"][number];

/** What an agent thought, did and saw in one step. */
export type Turn = { events: Event[] };

/** A message with an `id` is the output of a tool call. */
const isAgentText = (event: Event) => event.type === "thought" || (event.type === "message" && !("id" in event));

/**
 * Consecutive events as turns: thoughts and model usage, the calls that follow, and all that belongs to them. A turn
 * ends where the agent thinks again, or calls a tool after its earlier calls have returned.
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
