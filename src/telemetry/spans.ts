import { version } from "../../package.json" with { type: "json" };
import type { SessionEvent } from "../agents/agent.ts";
import { type ModelProvider, parseModelId } from "../config/model-settings.ts";
import type { EventOf } from "../grading/events.ts";

/** The release of the semantic conventions whose names are used. The GenAI conventions are in development and change between releases. */
const schemaUrl = "https://opentelemetry.io/schemas/1.41.0";

/** Spans per request. If all contents have their maximum length, these are about 6 MB. */
const spansPerRequest = 200;
/** Length of a content in UTF-16 code units; the rest is cut. */
const maxContent = 16_384;
// Kinds of spans, and the status of one that failed, as numbers of OTLP.
const internalKind = 1;
const clientKind = 3;
const errorStatus = 2;

type AttributeValue = { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean };
type Attribute = { key: string; value: AttributeValue };
type Attributes = Record<string, string | number | boolean | bigint | null | undefined>;

type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  events?: { timeUnixNano: string; name: string; attributes: Attribute[] }[];
  status?: { code: number };
};

/** An ended run with its report and the session of its last attempt. */
export type TracedRun = {
  id: string;
  orgId: string;
  promptId: string;
  agent: string;
  agentVersion: string | null;
  model: string | null;
  status: string;
  failureCause: string | null;
  text: string;
  attempt: number;
  /** `score` null: there is none. */
  report: { slug: string; outcome: string; scope: string; score: number | null; grade: string | null } | null;
  events: SessionEvent[];
};

/**
 * The requests of OTLP over HTTP with JSON that export a session as one trace. It follows the GenAI conventions: `invoke_agent` with `chat` and
 * `execute_tool` below it. IDs depend only on the session, so a repeated export is the same trace. `withContent`: includes tasks, arguments and
 * results of tools, and final answers.
 */
export function toTraceRequests(run: TracedRun, withContent: boolean): object[] {
  const spans = toSpans(run, withContent);
  const resource = { attributes: attributes({ "service.name": "evald", "service.version": version }) };
  const count = Math.ceil(spans.length / spansPerRequest);
  return Array.from({ length: count }, (_, i) => ({
    resourceSpans: [
      {
        resource,
        scopeSpans: [
          {
            scope: { name: "evald", version },
            spans: spans.slice(i * spansPerRequest, (i + 1) * spansPerRequest),
            schemaUrl,
          },
        ],
        schemaUrl,
      },
    ],
  }));
}

/** A span below the root, for the event `seq`. Times are in epoch ms. */
type ChildSpan = { seq: number; name: string; kind: number; startAt: number; endAt: number };

function toSpans(run: TracedRun, withContent: boolean): Span[] {
  const { events } = run;
  const traceId = run.id.replaceAll("-", "");
  const spanId = (name: string | number) =>
    new Bun.CryptoHasher("sha256").update(`${run.id} ${run.attempt} ${name}`).digest("hex").slice(0, 16);
  const root = spanId("root");
  const session = timesOf(events);
  const toChild = ({ seq, name, kind, startAt, endAt }: ChildSpan, values: Attributes): Span => ({
    traceId,
    spanId: spanId(seq),
    parentSpanId: root,
    name,
    kind,
    startTimeUnixNano: toNanoseconds(startAt),
    endTimeUnixNano: toNanoseconds(Math.max(startAt, endAt)),
    attributes: attributes(values),
  });
  const spans: Span[] = [];
  const toolResults = new Map(events.flatMap((event) => (event.type === "tool_result" ? [[event.id, event]] : [])));
  /** The model of the judge, from the start of the judging on. */
  let judge: string | null = null;
  let previousAt = session.startAt;
  for (const event of events) {
    const { seq, at } = event;
    if (event.type === "milestone" && event.name === "judging") judge = event.detail.model;
    if (event.type === "tool_call") {
      const result = toolResults.get(event.id);
      const times = { startAt: at, endAt: result?.at ?? session.endAt };
      const toolSpan = { seq, name: `execute_tool ${event.tool}`, kind: internalKind, ...times };
      const span = toChild(toolSpan, toolAttributes(event, result, withContent));
      spans.push(result?.ok === false ? { ...span, status: { code: errorStatus } } : span);
    }
    if (event.type === "usage") {
      // A call is recorded when it ends. So it can't have started before the previous event.
      const chatSpan = { seq, name: `chat ${event.model}`, kind: clientKind, startAt: previousAt, endAt: at };
      const values = { ...chatAttributes(event, judge ?? run.model), "evald.judge": judge !== null };
      spans.push(toChild(chatSpan, values));
    }
    previousAt = at;
  }
  return [rootSpan(run, traceId, root, withContent), ...spans];
}

const toolAttributes = (
  call: EventOf<"tool_call">,
  result: EventOf<"tool_result"> | undefined,
  withContent: boolean,
): Attributes => ({
  "gen_ai.operation.name": "execute_tool",
  "gen_ai.tool.name": call.tool,
  "gen_ai.tool.type": "function",
  "gen_ai.tool.call.id": call.id,
  "error.type": result?.ok === false ? "tool_error" : null,
  "gen_ai.tool.call.arguments": withContent ? contentOf(call.input) : null,
  "gen_ai.tool.call.result": withContent && result ? contentOf(result.output) : null,
});

/** `model`: includes the provider, which the event doesn't name. */
const chatAttributes = (usage: EventOf<"usage">, model: string | null): Attributes => ({
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": providerOf(model),
  "gen_ai.response.model": usage.model,
  "gen_ai.usage.input_tokens": BigInt(usage.inputTokens),
  "gen_ai.usage.output_tokens": BigInt(usage.outputTokens),
  "gen_ai.usage.cache_read.input_tokens": usage.cachedTokens === undefined ? null : BigInt(usage.cachedTokens),
  "gen_ai.usage.cache_creation.input_tokens":
    usage.cacheWrittenTokens === undefined ? null : BigInt(usage.cacheWrittenTokens),
  "evald.cost_usd": usage.costUsd,
});

/** When a session started and ended, epoch ms. */
const timesOf = (events: SessionEvent[]) => ({ startAt: events[0]?.at ?? 0, endAt: events.at(-1)?.at ?? 0 });

function rootSpan(run: TracedRun, traceId: string, spanId: string, withContent: boolean): Span {
  const { report, events } = run;
  const { startAt, endAt } = timesOf(events);
  const end = events.findLast((event) => event.type === "end");
  const message = (role: string, content: string, more = {}) =>
    JSON.stringify([{ role, parts: [{ type: "text", content: cut(content) }], ...more }]);
  return {
    traceId,
    spanId,
    name: `invoke_agent ${run.agent}`,
    kind: internalKind,
    startTimeUnixNano: toNanoseconds(startAt),
    endTimeUnixNano: toNanoseconds(endAt),
    attributes: attributes({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.provider.name": providerOf(run.model),
      "gen_ai.agent.name": run.agent,
      "gen_ai.agent.version": run.agentVersion,
      "gen_ai.request.model": run.model === null ? null : (parseModelId(run.model)?.name ?? run.model),
      "gen_ai.conversation.id": run.id,
      "error.type": run.failureCause,
      "evald.organization.id": run.orgId,
      "evald.prompt.id": run.promptId,
      "evald.run.status": run.status,
      "evald.report.slug": report?.slug,
      "evald.report.outcome": report?.outcome,
      "gen_ai.input.messages": withContent ? message("user", run.text) : null,
      "gen_ai.output.messages": withContent && end ? message("assistant", end.reason, { finish_reason: "stop" }) : null,
    }),
    ...(report && { events: [gradeEvent(report, endAt)] }),
    ...(run.failureCause !== null && { status: { code: errorStatus } }),
  };
}

/** The event with the score in the span of a run. */
const gradeEvent = ({ scope, score, grade, outcome }: NonNullable<TracedRun["report"]>, at: number) => ({
  timeUnixNano: toNanoseconds(at),
  name: "gen_ai.evaluation.result",
  attributes: attributes({
    "gen_ai.evaluation.name": `evald ${scope}`,
    "gen_ai.evaluation.score.value": score,
    "gen_ai.evaluation.score.label": grade ?? outcome,
  }),
});

/** The provider of a model by its name in the conventions. */
function providerOf(model: string | null): string {
  const provider = model === null ? undefined : parseModelId(model)?.provider;
  return provider === undefined ? otherProvider : providerNames[provider];
}

const otherProvider = "_OTHER";
const providerNames: Record<ModelProvider, string> = {
  anthropic: "anthropic",
  openai: "openai",
  google: "gcp.gemini",
  "openai-compatible": otherProvider,
};

const toNanoseconds = (ms: number): string => `${Math.round(ms)}000000`;

const cut = (text: string): string => (text.length > maxContent ? text.slice(0, maxContent).toWellFormed() : text);
const contentOf = (value: unknown): string => cut(JSON.stringify(value));

/** Numbers become doubles, bigints integers; entries without a value are left out. */
const attributes = (values: Attributes): Attribute[] =>
  Object.entries(values).flatMap(([key, value]): Attribute[] => {
    if (value === null || value === undefined) return [];
    if (typeof value === "string") return [{ key, value: { stringValue: value } }];
    if (typeof value === "boolean") return [{ key, value: { boolValue: value } }];
    return [{ key, value: typeof value === "bigint" ? { intValue: String(value) } : { doubleValue: value } }];
  });
