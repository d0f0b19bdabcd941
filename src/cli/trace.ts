import type { Command } from "commander";
import { type EventType, eventTypes } from "../agents/agent.ts";
import { badRequest } from "../errors.ts";
import { loadEventSource } from "../lazy-packages.ts";
import { toPrintable } from "../log.ts";
import { eventSummary, hasEventFailed } from "../reports/event-summary.ts";
import type { Trace } from "../reports/trace-schema.ts";
import type { Run } from "../runs/schema.ts";
import { isId } from "../schema.ts";
import type { Api } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, printStyled, say, styled, toJson, wholeNumber } from "./terminal.ts";
import { cutText } from "./text-layout.ts";

type TraceEvent = Trace["events"][number];
type Message = { event: TraceEvent } | { run: Run };
type TraceFilter = ApiOptions & { follow?: boolean; types?: string; attempt?: number };

/** Adds `trace`: prints the session of a run. */
export function addTrace(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("trace <run>")
      .description("Print the session of a run, an event per line; by run ID or report slug")
      .option("--follow", "Also print the events of an unfinished run that come later, until it ends")
      .option("--types <types>", `Only these, separated by commas: ${eventTypes.join(", ")}`)
      .option("--attempt <n>", "Only this attempt (default: the last one)", wholeNumber(1, 1000)),
    "Print events as JSON, one per line",
    "trace 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20 --follow",
  ).action((target: string, { follow = false, types, attempt, json, ...address }: TraceFilter) => {
    const selectedTypes = types?.split(",").map(toEventType) ?? eventTypes;
    return useApi(address, async (api) => {
      const runId = isId(target)
        ? target
        : (await api.request("GET /reports/{slug}", { path: { slug: target } })).run.runId;
      let isUnfinished = false;
      for await (const message of streamRun(api, runId, { attempt, follow })) {
        if ("event" in message) {
          if (selectedTypes.includes(message.event.type)) {
            if (json) print(toJson(message.event));
            else printStyled(toLine(message.event));
          }
        } else if (follow) say(`Run ${runId}: ${message.run.status}`);
        else isUnfinished = message.run.completedAt === null;
      }
      if (isUnfinished) say(`The run ${runId} has not ended. Pass --follow to print its events as they come.`);
    });
  });
}

function toEventType(word: string): EventType {
  const type = eventTypes.find((each) => each === word.trim());
  if (type === undefined)
    throw badRequest(`Invalid --types: ${JSON.stringify(word)} is not one of ${eventTypes.join(", ")}.`);
  return type;
}

/** Pause between two connections. */
const pauseMs = 1_000;

/** The events and states of a run so far. With `follow`, it continues until the run ends. Resumes after a lost connection. */
async function* streamRun(
  api: Api,
  runId: string,
  { attempt, follow }: { attempt: number | undefined; follow: boolean },
): AsyncGenerator<Message> {
  const path = `/runs/${encodeURIComponent(runId)}/events`;
  let lastEventId: string | undefined;
  for (;;) {
    const response = await api.send("GET", path, { query: { attempt, ...(!follow && { follow }) }, lastEventId });
    if (response.status === 204 || response.body === null) return;
    try {
      const messages = response.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new (loadEventSource().EventSourceParserStream)());
      for await (const { event: name, id, data } of messages) {
        lastEventId = id ?? lastEventId;
        if (name === "event") yield { event: JSON.parse(data) as TraceEvent };
        if (name === "run") yield { run: JSON.parse(data) as Run };
        if (name === "end") return;
      }
      if (!follow) return;
    } catch (error) {
      // If the connection was lost, the next request resumes or reports the problem.
      if (!(error instanceof Error)) throw error;
    }
    await Bun.sleep(pauseMs);
  }
}

/** In a narrower terminal, there is no space for times. */
const minColumnsForTime = 60;

/** `12  3.2 s  tool_call  fetch_page · https://…`, as wide as the terminal at most. */
function toLine({ seq, at: _, tMs, type, source, ...fields }: TraceEvent): string {
  const { columns = Number.POSITIVE_INFINITY } = process.stdout;
  const time = columns < minColumnsForTime ? [] : [`${(tMs / 1000).toFixed(1)} s`.padStart(8)];
  const summary = `${source === "agent" ? "" : `${source} · `}${eventSummary(type, fields)}`;
  const line = cutText([String(seq).padStart(4), ...time, type.padEnd(12), summary].join("  "), columns);
  return hasEventFailed(type, fields) ? styled("red", line) : toPrintable(line);
}
