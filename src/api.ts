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

/** Error answers of an operation, for its `response`. 401 and 500 belong to every one under /api/. */
export const errors = (...statuses: (400 | 404 | 409 | 413)[]) =>
  Object.fromEntries([401, 500, ...statuses].map((status) => [status, ApiError])) as Record<number, typeof ApiError>;

/** A page of a list as an answer, with the header that counts the whole list. */
export const listOf = <T extends TSchema>(item: T, description: string) =>
  Type.Array(item, {
    description,
    headers: {
      "X-Total-Count": Type.Integer({ minimum: 0, description: "Rows of the whole list, on all pages" }),
    },
  });

/** The organisation that the gate found for a request. */
export type OrgOf = (request: Request) => OrgId;

/** How an operation of the API is shown in the reference. */
export const operation = (tag: string, operationId: string, summary: string, more: Record<string, unknown> = {}) => ({
  detail: { tags: [tag], operationId, summary, security: [{ bearer: [] }], ...more },
});
