import { rmSync } from "node:fs";
import { viaSocket } from "../../net/upstream.ts";
import { makeSocketFolder } from "../sockets.ts";
import { createAnswerReader, findReader, type ModelAnswer, type ModelCall, type ModelResult } from "./conversation.ts";
import { type Fields, list, object, text } from "./fields.ts";

type Hooks = {
  /** A tool call of the model with its result, without duplicates. */
  onCall: (call: ModelCall) => void;
  onResult: (result: ModelResult) => void;
  /** A request of the main conversation. */
  onRequest: (body: Fields) => void;
};

/** The session according to its model calls, to fill gaps in the agent's own stream. */
export type ModelRecord = ReturnType<typeof startRecord>;

const hopByHopHeaders = ["host", "connection", "content-length", "accept-encoding", "transfer-encoding"];
const maxErrorChars = 64 * 1024;

/** Listens on its own socket in front of the gateway's, and reads what passes, unchanged. */
export function startRecord(gatewaySocket: string, { onCall, onResult, onRequest }: Hooks) {
  const send = viaSocket(gatewaySocket, () => {});
  const { folder, socketPath } = makeSocketFolder("gateway");
  const results = new Map<string, string>();
  const pending = new Map<string, ModelCall>();
  let unnamed = 0;
  let lastAnswer: string | null = null;
  let refusal: { status: number; message: string } | null = null;
  let isOverBudget = false;
  let nextRequest = Promise.withResolvers<void>();

  function addResults(all: ModelResult[]): void {
    const counts = new Map<string, number>();
    for (const { id, name, output } of all) {
      const nth = (counts.get(name ?? "") ?? 0) + 1;
      counts.set(name ?? "", nth);
      const key = id || `${name} ${nth}`;
      if (results.has(key)) continue;
      results.set(key, output);
      pending.delete(key);
      onResult({ id: key, name, output });
    }
    nextRequest.resolve();
    nextRequest = Promise.withResolvers();
  }

  function addAnswer({ text, calls }: ModelAnswer): void {
    lastAnswer = calls.length > 0 ? null : text.trim() || null;
    for (const { id, ...rest } of calls) {
      const call = { ...rest, id: id || `call ${++unnamed}` };
      pending.set(call.id, call);
      onCall(call);
    }
  }

  async function forward(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const reader = findReader(pathname);
    const raw = await request.text();
    const body = parseFields(raw);
    const isOfMain = reader !== null && isMain(body);
    if (isOfMain) {
      onRequest(body);
      addResults(reader.resultsOf(body));
    }
    const headers = new Headers(request.headers);
    for (const name of hopByHopHeaders) headers.delete(name);
    const { method, signal } = request;
    const response = await send(`http://gateway${pathname}${search}`, {
      method,
      headers,
      body: raw || undefined,
      signal,
    });
    if (response.status >= 400) {
      const error = (await response.text()).slice(0, maxErrorChars);
      refusal = { status: response.status, message: messageIn(error) };
      isOverBudget ||= response.status === 402;
      return new Response(error, { status: response.status, headers: response.headers });
    }
    refusal = null;
    if (!isOfMain || !response.body) return response;
    const answer = createAnswerReader(reader, /^text\/event-stream/i.test(response.headers.get("content-type") ?? ""));
    const copyToAnswer = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, out) {
        answer.push(chunk);
        out.enqueue(chunk);
      },
      flush: () => addAnswer(answer.end()),
    });
    return new Response(response.body.pipeThrough(copyToAnswer), {
      status: response.status,
      headers: response.headers,
    });
  }

  const server = Bun.serve({
    unix: socketPath,
    ...({ idleTimeout: 0 } as object),
    fetch: (request) => forward(request).catch(() => new Response("the model gateway was closed", { status: 502 })),
    error: () => new Response("the model gateway was closed", { status: 502 }),
  });

  return {
    socketPath,
    /** The result of a call as the model got it, by its ID or, if the protocol has none, as the nth call of a tool. */
    findResult: (id: string, name: string, nth: number): string | null =>
      // Gemini CLI prefixes the ID with the tool.
      results.get(id) ?? results.get(id.replace(`${name}__`, "")) ?? results.get(`${name} ${nth}`) ?? null,
    /** Resolves with the agent's next request to its model, or after a timeout. */
    async nextRequest(ms: number): Promise<void> {
      let timer: ReturnType<typeof setTimeout> | undefined;
      await Promise.race([nextRequest.promise, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
      clearTimeout(timer);
    },
    /** The ID of the only call whose result the model hasn't got yet; null if there are none or several. */
    openCall: (): string | null => (pending.size === 1 ? ([...pending.keys()][0] ?? null) : null),
    /** The last answer of the model, if it calls no tool. */
    lastAnswer: (): string | null => lastAnswer,
    /** Why the last model call failed; null if it succeeded. */
    refusal: () => refusal,
    isOverBudget: () => isOverBudget,
    async close(): Promise<void> {
      await server.stop(true);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The main conversation is the one with tools; agents also request titles and summaries. */
const isMain = ({ tools, input }: Fields): boolean =>
  list(tools).length > 0 || list(input).some((item) => object(item).type === "additional_tools");

function parseFields(raw: string): Fields {
  try {
    return object(JSON.parse(raw));
  } catch {
    return {};
  }
}

function messageIn(response: string): string {
  const { error } = parseFields(response);
  return (text(object(error).message) || text(error) || response).replace(/\s+/g, " ").trim().slice(0, 300);
}
