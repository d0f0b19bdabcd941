import { type TSchema, Type } from "@sinclair/typebox";
import type { OrgId } from "./deps.ts";
import { type ErrorCode, errorStatus } from "./errors.ts";
import { OneOf } from "./schema.ts";

/** Body of every answer that is no success. */
export const ApiError = Type.Object(
  {
    error: OneOf(Object.keys(errorStatus) as ErrorCode[], "Stable code"),
    detail: Type.Optional(Type.String({ description: "What to do" })),
  },
  {
    title: "Error",
    examples: [{ error: "not_found", detail: "no run has the id 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20" }],
  },
);

/** Error answers of an operation, beside its success. 401, 403, 500 and 503 belong to every one under /api/. */
export const errors = (...statuses: (400 | 404 | 409 | 413)[]) =>
  Object.fromEntries([401, 403, 500, 503, ...statuses].map((status) => [status, ApiError])) as Record<
    number,
    typeof ApiError
  >;

/** A page of a list as an answer. */
export const listOf = <T extends TSchema>(item: T, description: string) => Type.Array(item, { description });

const totalCount = {
  "X-Total-Count": {
    description: "Rows of the whole list, on all pages",
    schema: { type: "integer" as const, minimum: 0 },
  },
};

/** What an API key may be held to: to read, to ask for runs and end them, to change everything else. */
export const scopes = ["read", "run", "write"] as const;
export type Scope = (typeof scopes)[number];

/** The organisation that the gate found for a request. Throws forbidden for a key without that scope: `read` for a GET, else `write`, unless it is named. */
export type OrgOf = (request: Request, scope?: Scope) => OrgId;

/** Answers as the reference shows them. They are not checked while serving: that took three times as long as making a list of runs. */
const toResponses = (answers: Record<number, TSchema>) =>
  Object.fromEntries(
    Object.entries(answers).map(([status, schema]) => [
      status,
      {
        description: schema.description ?? `Response for status ${status}`,
        ...(schema.type === "array" ? { headers: totalCount } : {}),
        content: { "application/json": { schema } },
      },
    ]),
  );

/** How an operation of the API is shown in the reference, with the schema of each of its answers. */
export const operation = (
  tag: string,
  operationId: string,
  summary: string,
  answers: Record<number, TSchema>,
  more: Record<string, unknown> = {},
) => ({
  detail: { tags: [tag], operationId, summary, security: [{ bearer: [] }], responses: toResponses(answers), ...more },
});
