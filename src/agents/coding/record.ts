import { rmSync } from "node:fs";
import { viaSocket } from "../../net/upstream.ts";
import { firstCall } from "../../once.ts";
import { endingOfCall } from "../endings.ts";
import { type Fields, list, object, parseObject } from "../fields.ts";
import { createMeter, type ResponseSummary } from "../gateway/wire.ts";
import { messageIn } from "../model-errors.ts";
import { createTemporaryFolder } from "../sockets.ts";
import { createAnswerReader, findReader, type ModelAnswer, type ModelCall, type ModelResult } from "./conversation.ts";

/** The session according to its model calls, to fill gaps in the agent's own stream. */
export type ModelRecord = {
  socketPath: string;
  /** Outputs by the ID of the call. If the protocol has no IDs, the key consists of the tool and the number of its calls so far; see `addResults`. */
  results: Map<string, string>;
  /** Calls whose result the model hasn't got yet. */
  pending: Map<string, ModelCall>;
  /** Number of calls so far that the protocol gave no ID, by tool. */
  callsWithoutId: Map<string, number>;
  /** The last answer of the model, if it calls no tool. */
  lastAnswer: string | null;
  /** The answers of the main conversation so far, with what the provider reported at their ends. `stop`: why the model stopped early. */
  answers: { summary: ResponseSummary; isStream: boolean; hasEnded: boolean; stop: ModelAnswer["stop"] }[];
  /** Why the last model call failed, and whether it belonged to the main conversation; null if it succeeded. */
  lastFailure: { status: number; message: string; isMain: boolean } | null;
  /** What the provider said when the main conversation was last too long; null: it never was. */
  overflow: string | null;
  /** How often in a row the main conversation became too long, each time after few answers. */
  overflowCount: number;
  /** Number of its answers since it was last too long. */
  answersSinceOverflow: number;
  /** Whether a call was refused with 402, as the gateway does once the run has used its budget. */
  isOverBudget: boolean;
  /** Number of model calls so far, and how many of them have no complete answer yet. */
  callCount: number;
  callsInProgress: number;
  /** Resolves when the main conversation sends its next request. */
  nextRequest: PromiseWithResolvers<void>;
  hooks: RecordHooks;
  close(): Promise<void>;
};

/** Called with each tool call of the model and its result, without duplicates. */
export type ModelHooks = { onCall: (call: ModelCall) => void; onResult: (result: ModelResult) => void };
/** `onRequest`: called with each request of the main conversation. */
type RecordHooks = ModelHooks & { onRequest: (body: Fields) => void };

const hopByHopHeaders = ["host", "connection", "content-length", "accept-encoding", "transfer-encoding"];
/** If a conversation is too long again after at most this many answers, it was not shortened enough. */
const fewAnswers = 2;
const maxErrorChars = 64 * 1024;

/** Starts a proxy in front of the gateway, on a socket of its own. It forwards everything unchanged and records the main conversation. */
export function startRecord(gatewaySocket: string, hooks: RecordHooks): ModelRecord {
  const send = viaSocket(gatewaySocket);
  const { folder, socketPath } = createTemporaryFolder("gateway");
  const toClosedResponse = () => new Response("the model gateway was closed", { status: 502 });
  const server = Bun.serve({
    unix: socketPath,
    // Typed for TCP only, but unix sockets also close idle connections without it.
    ...({ idleTimeout: 0 } as object),
    fetch: (request) => countAndForward(record, send, request).catch(toClosedResponse),
    error: toClosedResponse,
  });
  const record: ModelRecord = {
    socketPath,
    results: new Map(),
    pending: new Map(),
    callsWithoutId: new Map(),
    lastAnswer: null,
    answers: [],
    lastFailure: null,
    overflow: null,
    overflowCount: 0,
    answersSinceOverflow: 0,
    isOverBudget: false,
    callCount: 0,
    callsInProgress: 0,
    nextRequest: Promise.withResolvers(),
    hooks,
    async close() {
      await server.stop(true);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return record;
}

async function countAndForward(
  record: ModelRecord,
  send: ReturnType<typeof viaSocket>,
  request: Request,
): Promise<Response> {
  record.callCount++;
  record.callsInProgress++;
  const countEnd = firstCall(() => void record.callsInProgress--);
  return await forward(record, send, request, countEnd).catch((error) => {
    countEnd();
    throw error;
  });
}

/** Forwards a model call. `countEnd` is called when its answer is over. */
async function forward(
  record: ModelRecord,
  send: ReturnType<typeof viaSocket>,
  request: Request,
  countEnd: () => void,
): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const reader = findReader(pathname);
  const requestText = await request.text();
  const requestBody = parseObject(requestText) ?? {};
  const isMain = reader !== null && hasTools(requestBody);
  if (isMain) {
    record.hooks.onRequest(requestBody);
    addResults(record, reader.resultsOf(requestBody));
  }
  const headers = new Headers(request.headers);
  for (const name of hopByHopHeaders) headers.delete(name);
  const { method, signal } = request;
  const response = await send(`http://gateway${pathname}${search}`, {
    method,
    headers,
    body: requestText || undefined,
    signal,
  });
  const { status, body } = response;
  if (status >= 400) {
    const error = (await response.text()).slice(0, maxErrorChars);
    addFailure(record, status, error, isMain);
    countEnd();
    return new Response(error, { status, headers: response.headers });
  }
  setLastFailure(record, isMain, null);
  if (isMain) record.answersSinceOverflow++;
  if (!body) {
    countEnd();
    return response;
  }
  const isStream = /^text\/event-stream/i.test(response.headers.get("content-type") ?? "");
  const hooks = isMain ? recordAnswer(record, reader, isStream, countEnd) : { onBytes() {}, onEnd: countEnd };
  return new Response(passOn(body, hooks), { status, headers: response.headers });
}

/** Records whether a call failed. A side call, such as for a title, does not replace a failure of the main conversation. */
function setLastFailure(record: ModelRecord, isMain: boolean, failure: ModelRecord["lastFailure"]): void {
  if (isMain || !record.lastFailure?.isMain) record.lastFailure = failure;
}

function addFailure(record: ModelRecord, status: number, error: string, isMain: boolean): void {
  setLastFailure(record, isMain, { status, message: messageIn(error), isMain });
  record.isOverBudget ||= status === 402;
  if (!isMain || endingOfCall(status, error) !== "context_overflow") return;
  record.overflow = messageIn(error);
  record.overflowCount = record.answersSinceOverflow > fewAnswers ? 1 : record.overflowCount + 1;
  record.answersSinceOverflow = 0;
}

/**
 * `onEnd` is called once: with `provider` if the answer was sent to its end, with `fault` if it was cut, and with `client` if the client stopped
 * reading.
 */
type AnswerHooks = { onBytes: (bytes: Uint8Array) => void; onEnd: (by: "provider" | "fault" | "client") => void };

/** Records an answer of the main conversation as it passes. */
function recordAnswer(
  record: ModelRecord,
  reader: NonNullable<ReturnType<typeof findReader>>,
  isStream: boolean,
  countEnd: () => void,
): AnswerHooks {
  const answerReader = createAnswerReader(reader, isStream);
  const meter = createMeter(reader.format, isStream);
  const answer: ModelRecord["answers"][number] = { summary: meter.summary, isStream, hasEnded: false, stop: null };
  record.answers.push(answer);
  return {
    onBytes(bytes) {
      answerReader.push(bytes);
      meter.push(bytes);
    },
    onEnd(by) {
      countEnd();
      answer.hasEnded = by !== "client";
      if (by !== "provider") return;
      meter.end();
      const modelAnswer = answerReader.end();
      answer.stop = modelAnswer.stop;
      addAnswer(record, modelAnswer);
    },
  };
}

/** The same body, with hooks that are called as it passes. */
function passOn(body: ReadableStream<Uint8Array>, { onBytes, onEnd }: AnswerHooks): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(stream) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          onBytes(value);
          return stream.enqueue(value);
        }
        onEnd("provider");
        stream.close();
      } catch {
        onEnd("fault");
        // Bun would print a reason.
        stream.error(undefined);
      }
    },
    cancel(reason) {
      onEnd("client");
      return reader.cancel(reason);
    },
  });
}

/** Whether the last answer was cut or broken by the provider. */
export function wasCut({ answers }: ModelRecord): boolean {
  const last = answers.at(-1);
  if (last === undefined || last.summary.isComplete) return false;
  // An answer that isn't a stream is known only at its end.
  const hasArrived = last.isStream || last.hasEnded;
  // Some providers never mark the end of an answer. If none of several answers is marked, the last one says nothing.
  const marksEnds = answers.length === 1 || answers.some(({ summary }) => summary.isComplete);
  return hasArrived && marksEnds;
}

/** The ID of a call to which the protocol gave no ID. */
const toCallId = (tool: string, callNumber: number) => `${tool} ${callNumber}`;

/** Adds the results in a request, which contains the whole conversation: the nth result of a tool belongs to its nth call. */
function addResults(record: ModelRecord, modelResults: ModelResult[]): void {
  const { results, pending, hooks } = record;
  const counts = new Map<string, number>();
  for (const { id, name, output } of modelResults) {
    const callNumber = (counts.get(name ?? "") ?? 0) + 1;
    counts.set(name ?? "", callNumber);
    const key = id || toCallId(name ?? "", callNumber);
    if (results.has(key)) continue;
    results.set(key, output);
    pending.delete(key);
    hooks.onResult({ id: key, name, output });
  }
  record.nextRequest.resolve();
  record.nextRequest = Promise.withResolvers();
}

function addAnswer(record: ModelRecord, { text, calls }: ModelAnswer): void {
  record.lastAnswer = calls.length > 0 ? null : text.trim() || null;
  for (const { id, ...rest } of calls) {
    const call = { ...rest, id: id || nextCallId(record, rest.name) };
    record.pending.set(call.id, call);
    record.hooks.onCall(call);
  }
}

function nextCallId({ callsWithoutId }: ModelRecord, tool: string): string {
  const callNumber = (callsWithoutId.get(tool) ?? 0) + 1;
  callsWithoutId.set(tool, callNumber);
  return toCallId(tool, callNumber);
}

/** The result of a call as the model got it, by its ID or, if the protocol has none, as the nth call of a tool. */
export const findResult = ({ results }: ModelRecord, id: string, name: string, callNumber: number): string | null =>
  // Gemini CLI prefixes the ID with the tool.
  results.get(id) ?? results.get(id.replace(`${name}__`, "")) ?? results.get(toCallId(name, callNumber)) ?? null;

/** The main conversation has tools. Agents also request titles and summaries, without tools. */
const hasTools = ({ tools, input }: Fields): boolean =>
  list(tools).length > 0 || list(input).some((item) => object(item).type === "additional_tools");
