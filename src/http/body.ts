import { AppError, errorStatus, invalidField } from "../errors.ts";

const defaultMaxBytes = 1024 * 1024;
const maxDepth = 64;

/** Bun returns a bare 413 for a longer body. Up to this size, the app responds with an error body. */
export const maxRequestBodySize = 16 * defaultMaxBytes;

/** Throws too_large for a request that says it is larger than `max` bytes; 1 MiB by default. */
export function refuseLargeBody(request: Request, max = defaultMaxBytes): void {
  if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge(max);
}

/** Closes the connection after the response to a request whose body was not read to its end: nothing else limits what may follow. */
export async function closeIfUnread(request: Request, answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (!request.bodyUsed || response.status === errorStatus.too_large) response.headers.set("connection", "close");
  return response;
}

export const tooLarge = (max = defaultMaxBytes, what = "request body") =>
  new AppError(
    "too_large",
    `The ${what} is larger than ${max < defaultMaxBytes ? `${max / 1024} KiB` : `${max / defaultMaxBytes} MiB`}. Send a smaller one.`,
  );

/** Reads a JSON body that has no schema. Throws bad_request, too_large. */
export const readJson = async (request: Request): Promise<unknown> => parseJson(await readText(request), "body");

/** Reads the body as text. Throws too_large. */
async function readText(request: Request): Promise<string> {
  // Decoding bytes takes longer than the text that Bun makes of a body that has arrived.
  return declaresLength(request) ? request.text() : new TextDecoder().decode(await readBytes(request));
}

/** Whether a request says how long it is. Throws too_large. */
function declaresLength({ headers }: Request, maxBytes = defaultMaxBytes): boolean {
  const length = headers.get("content-length");
  if (Number(length) > maxBytes) throw tooLarge(maxBytes);
  return length !== null;
}

/** Reads the body; stops reading a chunked one at the limit. Throws too_large. */
export async function readBytes(request: Request, maxBytes = defaultMaxBytes): Promise<Uint8Array<ArrayBuffer>> {
  // This comes before `body` is used, which turns even a body that has arrived into a stream.
  if (declaresLength(request, maxBytes)) return request.bytes();
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

const wellFormed = (_key: string, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);

/** Parses untrusted JSON, at most 64 levels deep. `name`: of the value in the error. Throws bad_request. */
export function parseJson(text: string, name: string): unknown {
  let value: unknown;
  try {
    // SQLite cannot store a lone surrogate, so it is replaced.
    value = JSON.parse(text, /\\ud[89a-f]/i.test(text) ? wellFormed : undefined);
  } catch {
    throw invalidField(name, "must be JSON");
  }
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw invalidField(name, `must not be nested more than ${maxDepth} levels deep`);
    const next: unknown[] = [];
    for (const item of level) {
      if (item === null || typeof item !== "object") continue;
      if (Object.hasOwn(item, "__proto__")) throw invalidField(name, "must not contain the key __proto__");
      for (const inner of Object.values(item)) if (inner !== null && typeof inner === "object") next.push(inner);
    }
    level = next;
  }
  return value;
}
