import { AppError, errorStatus, invalidField } from "../errors.ts";
import { findRequestState, isReporter } from "./caller.ts";
import { nextTurn } from "./turns.ts";

const mib = 1024 * 1024;
const defaultMaxBytes = mib;
/**
 * The limit of bodies that anyone can send, without a key or with one that may be public. Bun receives a body on this thread: 64 of 1 MB at a time
 * keep it busy for a tenth of a second, before the app can let others go first.
 */
export const maxPublicBytes = 64 * 1024;
const maxDepth = 64;
const maxBodyValues = 20_000;

/** Bun returns a bare 413 for a longer body. Up to this size, the app responds with an error body. */
export const maxRequestBodySize = 16 * defaultMaxBytes;

/** Whether anyone could send a request: it has no key, or one that may be public. */
function isStranger(request: Request): boolean {
  const caller = findRequestState(request)?.caller;
  return !caller || isReporter(caller);
}

/** The limit of a body of the API in bytes, once its caller is known. */
const maxBytesOf = (request: Request): number => (isStranger(request) ? maxPublicBytes : defaultMaxBytes);

/** Whether a request has a body that may not have arrived yet. */
export const hasLargeBody = ({ headers }: Request): boolean =>
  headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > maxPublicBytes;

/** Throws too_large for a request to the API that says it is larger than `max` bytes; by default 1 MiB, or 64 KiB for a stranger. */
export function refuseLargeBody(request: Request, max = maxBytesOf(request)): void {
  if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge(max);
}

/** How long the rest of a refused body is received: without new data, and in total. */
const restMs = { idle: 500, total: 10_000 };
const noMoreData = { done: true, value: undefined } as const;

/**
 * Receives the rest of a refused body and drops it. A proxy such as nginx sends a body to its end before it reads the response, and asks to
 * close the connection: if Bun closed it earlier, the client would get 502 in place of the error (RFC 9112, section 9.6). Strangers get no
 * such service.
 */
async function receiveRest(request: Request): Promise<void> {
  if (isStranger(request) || request.bodyUsed || !request.body) return;
  const reader = request.body.getReader();
  await dropRest(() => reader.read());
  reader.cancel().catch(() => {});
}

/** Reads until the end, until nothing more arrives, or up to the largest body that Bun receives. */
async function dropRest(read: () => Promise<{ done?: boolean; value?: Uint8Array }>): Promise<void> {
  const deadline = performance.now() + restMs.total;
  for (let bytes = 0; bytes <= maxRequestBodySize && performance.now() < deadline; ) {
    const { promise: idle, resolve } = Promise.withResolvers<typeof noMoreData>();
    const timer = setTimeout(() => resolve(noMoreData), restMs.idle);
    const next = await Promise.race([read(), idle]).catch(() => noMoreData);
    clearTimeout(timer);
    if (next.done) return;
    bytes += next.value?.length ?? 0;
  }
}

/**
 * Responds to a request with a body that is chunked or large. If the body was refused, its rest is received first. The connection closes
 * after one that was not read to its end: nothing else limits what may follow.
 */
export async function answerLargeBody(request: Request, answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (response.status >= 400) await receiveRest(request);
  if (!request.headers.has("transfer-encoding")) return response;
  if (!request.bodyUsed || response.status === errorStatus.too_large) response.headers.set("connection", "close");
  return response;
}

/** The error of a body, or of `what`, with more than `max` bytes. */
export function tooLarge(max: number, what = "request body"): AppError {
  const limit = max < mib ? `${max / 1024} KiB` : `${max / mib} MiB`;
  return new AppError("too_large", `The ${what} is larger than ${limit}. Send a smaller one.`);
}

/** Reads a JSON body that has no schema. Throws bad_request, too_large. */
export const readJson = async (request: Request): Promise<unknown> =>
  parseJson(await readText(request), "body", maxBodyValues);

/** Reads the body as text. Throws too_large, unavailable. */
async function readText(request: Request): Promise<string> {
  // Decoding bytes takes longer than the text that Bun makes of a body that has arrived.
  const maxBytes = maxBytesOf(request);
  if (!declaresLength(request, maxBytes)) return new TextDecoder().decode(await readBytes(request, maxBytes));
  const text = await request.text();
  await nextTurn(request);
  return text;
}

/** Whether a request says how long it is. Throws too_large, and unsupported_media_type for a compressed body. */
function declaresLength({ headers }: Request, maxBytes: number): boolean {
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity")
    throw new AppError(
      "unsupported_media_type",
      `The request body has the Content-Encoding ${encoding.slice(0, 100)}. Send it without compression.`,
    );
  const length = headers.get("content-length");
  if (Number(length) > maxBytes) throw tooLarge(maxBytes);
  return length !== null;
}

/** Reads the body; stops reading a chunked one at the limit. Throws too_large, unavailable. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  // This comes before `body` is used, which turns even a body that has arrived into a stream.
  const bytes = declaresLength(request, maxBytes) ? await request.bytes() : await readChunks(request, maxBytes);
  await nextTurn(request);
  return bytes;
}

async function readChunks(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = request.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    bytes += next.value.length;
    if (bytes > maxBytes) {
      if (!isStranger(request)) await dropRest(() => reader.read());
      reader.cancel().catch(() => {});
      throw tooLarge(maxBytes);
    }
    chunks.push(next.value);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** Parses untrusted JSON, at most 64 levels deep. `name`: of the value in the error. Throws bad_request, and too_large for more values. */
export function parseJson(text: string, name: string, maxValues = Number.POSITIVE_INFINITY): unknown {
  checkShape(text, name, maxValues);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidField(name, "must be JSON");
  }
  // A text without `__proto__`, and without escapes of underscores and surrogates, has nothing to clean.
  const mayBeUnclean = /__proto__|\\u(?:005f|d[89a-f])/i.test(text);
  return mayBeUnclean ? clean(value, name) : value;
}

const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace] = [...'"\\,[]{}'].map((char) =>
  char.charCodeAt(0),
);

/**
 * Checks the depth and the number of values before they exist: a megabyte of JSON can have half a million values, and parsing and checking
 * them holds this thread for a second. Reading the text takes 2 ms. A regular expression takes seconds for a long string.
 */
function checkShape(text: string, name: string, maxValues: number): void {
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) i = endOfString(text, i);
    else if (code === comma || code === openBracket || code === openBrace) {
      if (code !== comma) depth++;
      values++;
      // What the outermost brackets contain is level 0.
      if (depth > maxDepth + 1) throw invalidField(name, `must not be nested more than ${maxDepth} levels deep`);
      if (values > maxValues)
        throw new AppError("too_large", `The ${name} has more than ${maxValues} values. Send fewer.`);
    } else if (code === closeBracket || code === closeBrace) depth--;
  }
}

/** The index of the quotation mark that ends a string, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

/** Refuses the key `__proto__`, and replaces lone surrogates, which SQLite cannot store. */
function clean(value: unknown, name: string): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (value === null || typeof value !== "object") return value;
  if (Object.hasOwn(value, "__proto__")) throw invalidField(name, "must not contain the key __proto__");
  const parent = value as Record<string | number, unknown>;
  // Object.keys of an array would make a text of each index.
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) value[i] = clean(value[i], name);
  else for (const key of Object.keys(parent)) parent[key] = clean(parent[key], name);
  return value;
}
