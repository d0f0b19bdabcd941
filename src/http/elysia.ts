import { CloneType, type TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { invalidInput } from "../schema.ts";
import { readJson } from "./body.ts";

// This file contains the workarounds for Elysia and Bun's server.

const isHead = Symbol("head");
type HeadRequest = Request & { [isHead]?: true };

/** A HEAD request as a GET, because it has the same route. Bun's server sends the headers without the body, and ends streams. */
export const routedAsGet = (request: Request): Request =>
  request.method === "HEAD" ? Object.assign(new Request(request, { method: "GET" }), { [isHead]: true }) : request;

/** The method as sent. */
export const sentMethod = (request: Request): string => ((request as HeadRequest)[isHead] ? "HEAD" : request.method);

/** The headers and status of a response in progress. */
export type Reply = { headers: Record<string, unknown>; status?: unknown };

/** The status of an answer. If the answer is a `Response`, it has its own status. */
export const statusOf = (answer: unknown, { status = 200 }: Reply): number =>
  Number(answer instanceof Response ? answer.status : status);

/**
 * Adds the missing headers to a page or stream. Elysia would copy the response and turn its body into a stream, which takes 1 µs more for each page
 * and drops its Content-Length.
 */
export function addHeaders(answer: unknown, reply: Reply): void {
  if (!(answer instanceof Response) || (reply.status ?? 200) !== 200) return;
  for (const [name, value] of Object.entries(reply.headers))
    if (!answer.headers.has(name)) answer.headers.set(name, String(value));
  reply.headers = {};
}

/**
 * A JSON body for a route, with any content type. The schema is checked here, because Elysia removes unknown fields before it validates. That would
 * turn an array into an object without keys.
 */
export function jsonBody<const T extends TSchema>(schema: T) {
  let compiled: TypeCheck<T> | undefined;
  const readBody = async ({ request }: { request: Request }): Promise<unknown> => {
    const value = await readJson(request);
    compiled ??= TypeCompiler.Compile(schema);
    const error = compiled.Check(value) ? undefined : compiled.Errors(value).First();
    if (error) throw invalidInput(error, "body");
    return value;
  };
  // The parser "json" never runs. It makes the OpenAPI document list the content type.
  const parsers: [typeof readBody, "json"] = [readBody, "json"];
  // Elysia adds additionalProperties: false to the schema that it gets, so it gets a copy.
  return { parse: parsers, body: CloneType(schema) };
}
