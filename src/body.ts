import { CloneType, type TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { AppError, badRequest, errorStatus } from "./errors.ts";
import { explain } from "./schema.ts";

const maxBytes = 1024 * 1024;
const maxDepth = 64;

/** What the server takes of a body with a length; above, it answers a bare 413 itself. Up to here the answer says what is wrong. */
export const maxRequestBodySize = 8 * maxBytes;

/** Throws too_large for a request that says it is larger than 1 MiB. */
export function refuseLargeBody(request: Request): void {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
}

/** Closes the connection after an answer to a body without a length that was not read to its end: nothing else bounds what may follow. */
export async function closeUnread(request: Request, answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (!request.bodyUsed || response.status === errorStatus.too_large) response.headers.set("connection", "close");
  return response;
}

const tooLarge = () => new AppError("too_large", "the body is larger than 1 MiB; send less");

/**
 * A JSON body for a route, whatever its content type says. The schema is checked here because Elysia drops unknown fields before it checks,
 * and by that turns a list into an object without keys.
 */
export function jsonBody<const T extends TSchema>(schema: T) {
  let compiled: TypeCheck<T> | undefined;
  const read = async ({ request }: { request: Request }): Promise<unknown> => {
    const value = await readJson(request);
    compiled ??= TypeCompiler.Compile(schema);
    const wrong = compiled.Check(value) ? undefined : compiled.Errors(value).First();
    if (wrong) throw badRequest(explain(wrong, "the body"));
    return value;
  };
  // "json" never runs: it tells the description of the API what the body is.
  const parsers: [typeof read, "json"] = [read, "json"];
  // Elysia closes the schema that it is given against unknown fields, so it is given a copy.
  return { parse: parsers, body: CloneType(schema) };
}

/** The JSON of a body that no schema describes. Throws bad_request, too_large. */
export const readJson = async (request: Request): Promise<unknown> => parseJson(await readText(request), "the body");

/** The body as text; a body without a length is read only as far as it may go. */
async function readText(request: Request): Promise<string> {
  if (!request.body) return "";
  if (request.headers.has("content-length")) return request.text();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

const wellFormed = (_key: string, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);

/** JSON of a stranger, not deeper than 64 levels. Throws bad_request that names it as `whole`. */
export function parseJson(text: string, whole: string): unknown {
  let value: unknown;
  try {
    // Half of a surrogate pair cannot be stored, so it is replaced before anyone sees it.
    value = JSON.parse(text, /\\ud[89a-f]/i.test(text) ? wellFormed : undefined);
  } catch {
    throw badRequest(`${whole} must be JSON`);
  }
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw badRequest(`${whole} must not be nested deeper than ${maxDepth} levels`);
    const next: unknown[] = [];
    for (const item of level) {
      if (item === null || typeof item !== "object") continue;
      if (Object.hasOwn(item, "__proto__")) throw badRequest(`the key __proto__ must not stand in ${whole}`);
      for (const inner of Object.values(item)) if (inner !== null && typeof inner === "object") next.push(inner);
    }
    level = next;
  }
  return value;
}
