import { KindGuard, type TSchema, Type } from "@sinclair/typebox";
import { type ErrorCode, errorStatus } from "../errors.ts";
import { OneOf } from "../schema.ts";

/** Body of every error response. */
export const ApiError = Type.Object(
  {
    error: Type.Union([OneOf(Object.keys(errorStatus) as ErrorCode[]), Type.String()], {
      description: "Stable error code. With an API key in compatibility mode: the code, a colon and the detail",
    }),
    detail: Type.Optional(Type.String({ description: "What happened and what to do" })),
  },
  {
    title: "Error",
    examples: [{ error: "not_found", detail: "No run has the ID 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20." }],
  },
);

/**
 * Error responses of an operation. An operation that reads a body returns 413, and then also 415. 401, 403, 500 and 503 apply to every operation
 * under /api/.
 */
export const errors = (...statuses: (400 | 404 | 409 | 413 | 429)[]) =>
  Object.fromEntries(
    [401, 403, 500, 503, ...statuses, ...(statuses.includes(413) ? [415] : [])].map((status) => [status, ApiError]),
  ) as Record<number, typeof ApiError>;

/** The schemas of paginated lists. */
const lists = new WeakSet<TSchema>();

/** The schema of one page of a list. */
export function listOf<T extends TSchema>(item: T, description: string) {
  const list = Type.Array(item, { description });
  lists.add(list);
  return list;
}

/** Scopes of an API key: read, start and cancel runs, change everything else, delete what can't be recreated. */
export const scopes = ["read", "run", "write", "delete"] as const;
export type Scope = (typeof scopes)[number];
/** Scopes that a key has only if it names them. `operate` concerns all organizations, and the audit log contains IP addresses. */
const namedScopes = ["operate", "audit"] as const;
/** All scopes, including the scopes of keys that can only report: friction for agents in the field, and counts of access logs. */
export const keyScopes = [...scopes, "report_friction", "report_traffic", ...namedScopes] as const;
export type KeyScope = (typeof keyScopes)[number];

/** Whether a key has a scope. `ownScopes`: the scopes that the key names; null: it names none, and has all except `namedScopes`. */
export const includesScope = (ownScopes: readonly KeyScope[] | null, scope: KeyScope): boolean =>
  ownScopes === null ? !namedScopes.some((each) => each === scope) : ownScopes.includes(scope);

/** A response in the OpenAPI document. */
type ResponseObject = { description: string; headers?: Record<string, object>; content?: Record<string, object> };
type Responses = Record<number, TSchema | ResponseObject>;

/** Responses for the OpenAPI document only. Validating responses on each request took three times as long as producing a list of runs. */
const toResponses = (responses: Responses): Record<string, ResponseObject> =>
  Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      KindGuard.IsSchema(response) ? toJsonResponse(status, response) : response,
    ]),
  );

const toJsonResponse = (status: string, schema: TSchema): ResponseObject => ({
  description: schema.description ?? `Response for status ${status}`,
  ...(lists.has(schema) ? { headers: { "X-Total-Count": { $ref: "#/components/headers/TotalCount" } } } : {}),
  content: { "application/json": { schema } },
});

/** The OpenAPI details of a route with each of its responses. A response is the schema of its JSON, or an object as it appears in the document. */
export const operation = (
  tag: string,
  operationId: string,
  summary: string,
  responses: Responses,
  details: Record<string, unknown> = {},
) => ({
  detail: {
    tags: [tag],
    operationId,
    summary,
    security: [{ bearer: [] }],
    responses: toResponses(responses),
    ...details,
  },
});

/** The OpenAPI details of a route that only operators of the service may use. `more`: additional sentences for its description. */
export const operatorOperation = (
  tag: string,
  operationId: string,
  summary: string,
  responses: Responses,
  more: string[] = [],
) =>
  operation(tag, operationId, summary, responses, {
    description: [...more, "Needs a key with the scope operate."].join(" "),
  });
