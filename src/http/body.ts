import { AppError, errorStatus, invalidField } from "../errors.ts";
import { findRequestState, isReporter } from "./caller.ts";
import { nextTurn } from "./turns.ts";

const mib = 1024 * 1024;
const defaultMaxBytes = mib;
/**
 * The limit of bodies that anyone can send: without a key, or with a key that may be public. Bun receives bodies on this thread. 64 bodies of 1 MB at
 * the same time keep the thread busy for a tenth of a second, before the app can serve others.
 */
export const maxPublicBytes = 64 * 1024;
const maxDepth = 64;
const maxBodyValues = 20_000;

/** For a longer body, Bun returns a 413 without a body. Up to this size, the app returns an error body. */
export const maxRequestBodySize = 16 * defaultMaxBytes;

/** Whether anyone could have sent a request: it has no key, or a key that may be public. */
function isStranger(request: Request): boolean {
  const caller = findRequestState(request)?.caller;
  return !caller || isReporter(caller);
}

/** The limit in bytes for a request body of the API, depending on the caller. */
const maxBytesOf = (request: Request): number => (isStranger(request) ? maxPublicBytes : defaultMaxBytes);

/** Whether a request has a large body, or a chunked one, which may be large. */
export const hasLargeBody = ({ headers }: Request): boolean =>
  headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > maxPublicBytes;

/** Throws too_large if a request to the API declares more than `max` bytes. The default is 1 MiB, or 64 KiB for a stranger. */
export function refuseLargeBody(request: Request, max = maxBytesOf(request)): void {
  if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge(max);
}

/** How long the rest of a refused body is received, in milliseconds: `idle` without new data, and `total` overall. */
const restMs = { idle: 500, total: 10_000 };
const noMoreData = { done: true, value: undefined } as const;

/**
 * Receives the rest of a refused body and drops it. A proxy such as nginx sends the whole body before it reads the response, and asks to close the
 * connection. If Bun closed the connection earlier, the client would get 502 instead of the error (RFC 9112, section 9.6). For strangers, the rest
 * isn't received.
 */
async function receiveRest(request: Request): Promise<void> {
  if (isStranger(request) || request.bodyUsed || !request.body) return;
  const reader = request.body.getReader();
  await dropRest(() => reader.read());
  reader.cancel().catch(() => {});
}

/** Reads until the body ends, until nothing more arrives, or until the largest body that Bun accepts. */
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
 * Responds to a request with a chunked or large body. If the body was refused, the rest is received first. If the body was not read to its end, the
 * connection is closed, because nothing else limits what the client may still send.
 */
export async function answerLargeBody(request: Request, answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (response.status >= 400) await receiveRest(request);
  if (!request.headers.has("transfer-encoding")) return response;
  if (!request.bodyUsed || response.status === errorStatus.too_large) response.headers.set("connection", "close");
  return response;
}

/** The error for more than `max` bytes. `what`: what is too large, by default the request body. */
export function tooLarge(max: number, what = "request body"): AppError {
  const limit = max < mib ? `${max / 1024} KiB` : `${max / mib} MiB`;
  return new AppError("too_large", `The ${what} is larger than ${limit}. Send a smaller one.`);
}

/** Reads a JSON body that has no schema. Throws bad_request, too_large. */
export const readJson = async (request: Request): Promise<unknown> =>
  parseJson(await readText(request), "body", maxBodyValues);

/** Reads the body as text. Throws too_large, unavailable. */
async function readText(request: Request): Promise<string> {
  // For a body that has already arrived, decoding its bytes takes longer than letting Bun return it as text.
  const maxBytes = maxBytesOf(request);
  if (!declaresLength(request, maxBytes)) return new TextDecoder().decode(await readBytes(request, maxBytes));
  const text = await request.text();
  // Other requests may have run meanwhile.
  await nextTurn(request);
  return text;
}

/** Whether a request declares its length. Throws too_large, and unsupported_media_type for a compressed body. */
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

/** Reads the body. Stops at the limit if the body is chunked. Throws too_large, unavailable. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  // `declaresLength` is asked first, because only `readChunks` uses `request.body`, which turns even a request that has arrived as a whole into a
  // stream.
  const bytes = declaresLength(request, maxBytes) ? await request.bytes() : await readChunks(request, maxBytes);
  // Other requests may have run meanwhile.
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

/**
 * Parses untrusted JSON with at most 64 levels. `name`: what the error calls the value. Throws bad_request, and too_large for more than `maxValues`
 * values.
 */
export function parseJson(text: string, name: string, maxValues = Number.POSITIVE_INFINITY): unknown {
  checkShape(text, name, maxValues);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidField(name, "must be JSON");
  }
  // A text has nothing to clean if it has no `__proto__`, and no escapes of underscores and surrogates.
  const mayBeUnclean = /__proto__|\\u(?:005f|d[89a-f])/i.test(text);
  return mayBeUnclean ? clean(value, name) : value;
}

const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace] = [...'"\\,[]{}'].map((char) =>
  char.charCodeAt(0),
);

/**
 * Checks the depth and the number of values before parsing. A megabyte of JSON can have half a million values, and parsing and checking them blocks
 * this thread for a second. This scan of the text takes 2 ms. A regular expression would take seconds for a long string.
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
      // The values in the outermost brackets are level 0.
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

/** Rejects the key `__proto__`. Replaces lone surrogates, because SQLite cannot store them. */
function clean(value: unknown, name: string): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (value === null || typeof value !== "object") return value;
  if (Object.hasOwn(value, "__proto__")) throw invalidField(name, "must not contain the key __proto__");
  const parent = value as Record<string | number, unknown>;
  // Not with Object.keys, which would create a string for each index of the array.
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) value[i] = clean(value[i], name);
  else for (const key of Object.keys(parent)) parent[key] = clean(parent[key], name);
  return value;
}
