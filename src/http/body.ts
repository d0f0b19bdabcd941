import { AppError, errorStatus, invalidField } from "../errors.ts";
import { findRequestState, isReporter } from "./caller.ts";
import { nextTurn } from "./turns.ts";

const defaultMaxBytes = 1024 * 1024;
/**
 * The limit of bodies that anyone can send, without a key or with one that may be public. Bun receives a body on this thread: 64 of 1 MB at a time
 * keep it busy for a tenth of a second, before the app can let others go first.
 */
export const maxPublicBytes = 64 * 1024;
const maxDepth = 64;
const maxValues = 20_000;

/** Bun returns a bare 413 for a longer body. Up to this size, the app responds with an error body. */
export const maxRequestBodySize = 16 * defaultMaxBytes;

/** The limit of a body of the API in bytes, once its caller is known. */
function maxBytesOf(request: Request): number {
  const caller = findRequestState(request)?.caller;
  return caller && !isReporter(caller) ? defaultMaxBytes : maxPublicBytes;
}

/** Throws too_large for a request to the API that says it is larger than `max` bytes; by default 1 MiB, or 64 KiB of a stranger. */
export function refuseLargeBody(request: Request, max = maxBytesOf(request)): void {
  if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge(max);
}

/** Closes the connection after the response to a request whose body was not read to its end: nothing else limits what may follow. */
export async function closeIfUnread(request: Request, answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (!request.bodyUsed || response.status === errorStatus.too_large) response.headers.set("connection", "close");
  return response;
}

export const tooLarge = (max: number, what = "request body") =>
  new AppError(
    "too_large",
    `The ${what} is larger than ${max < defaultMaxBytes ? `${max / 1024} KiB` : `${max / defaultMaxBytes} MiB`}. Send a smaller one.`,
  );

/** Reads a JSON body that has no schema. Throws bad_request, too_large. */
export const readJson = async (request: Request): Promise<unknown> =>
  parseJson(await readText(request), "body", maxValues);

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
  for await (const chunk of request.body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
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
  // An underscore can be an escape.
  return /__proto__|\\u(?:005f|d[89a-f])/i.test(text) ? clean(value, name) : value;
}

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
      if (code !== comma && ++depth > maxDepth + 1)
        throw invalidField(name, `must not be nested more than ${maxDepth} levels deep`);
      if (++values > maxValues)
        throw new AppError("too_large", `The ${name} has more than ${maxValues} values. Send fewer.`);
    } else if (code === closeBracket || code === closeBrace) depth--;
  }
}

const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace] = [...'"\\,[]{}'].map((char) =>
  char.charCodeAt(0),
);

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
