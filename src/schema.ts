import { Kind, type TSchema, Type, TypeRegistry } from "@sinclair/typebox";
import type { ValueError } from "@sinclair/typebox/errors";
import { badRequest } from "./errors.ts";

export const Id = Type.String({ format: "uuid" });
export const Time = Type.String({ format: "date-time" });
export const Url = Type.String({ format: "uri" });

/** A moment that somebody asks by; `toInstant` reads it. */
export const Moment = (description: string) =>
  Type.String({ maxLength: 40, description: `${description}: 2026-11-21 or 2026-11-21T09:30:00Z` });

/** Epoch milliseconds of a date, or of a date and time with its offset. Throws bad_request that names the field. */
export function toInstant(field: string, text: string): number {
  const day = text.slice(0, 10);
  const at = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  // Date.parse takes the 31st of February for the 3rd of March.
  if (Number.isNaN(at) || !new Date(Date.parse(day)).toISOString().startsWith(day))
    throw badRequest(
      `${field} must be a date or a date and time with its offset, as in 2026-11-21 or 2026-11-21T09:30:00Z`,
    );
  return at;
}

TypeRegistry.Set("PathId", (_, value) => typeof value === "string");

/** An id in a path. It is told as a uuid and not checked: any other text names nothing, and that is what the answer says. */
export const PathId = (description: string) =>
  Type.Unsafe<string>({ [Kind]: "PathId", type: "string", format: "uuid", description });

/** An absolute http(s) address; `checkHttpUrl` tells the rest that a pattern cannot. */
export const HttpUrl = (description: string) =>
  Type.String({ format: "uri", pattern: "^[hH][tT][tT][pP][sS]?://", maxLength: 2000, description });

/** An absolute http(s) address with a host, read; null for anything else. */
export const httpUrl = (address: string): URL | null =>
  /^https?:\/\/[^/?#\\]/i.test(address) ? URL.parse(address) : null;

/** Throws bad_request that names the field unless the value is an absolute http(s) address with a host. */
export function checkHttpUrl(field: string, value: string): void {
  if (!httpUrl(value)) throw badRequest(`${field}: ${JSON.stringify(value)} must be an http or https address`);
}

/** The name that a person gives to something, trimmed. Throws bad_request unless it has 1 to 200 characters. */
export function toName(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > 200) throw badRequest("the name must have 1 to 200 characters");
  return name;
}

/** What an API key looks like, wherever it stands in a text. */
export const keyShape = /evals_[0-9A-Za-z]{36}/;
const everyKey = new RegExp(keyShape, "g");

/** A text without the API keys in it. */
export const redactKeys = (text: string): string => text.replace(everyKey, "evals_[redacted]");

/** A text without these secrets in it. */
export const redactSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text);

/** A value or null; the key is always there. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

TypeRegistry.Set<{ enum: readonly unknown[] }>("OneOf", (schema, value) => schema.enum.includes(value));

/** One of a closed list of words. */
export const OneOf = <const T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>({
    [Kind]: "OneOf",
    type: "string",
    enum: [...values],
    ...(description === undefined ? {} : { description }),
  });

/** Why a value does not fit its schema, as a sentence that names the place and what would be right. `whole`: the name of the value itself. */
export function explain(error: ValueError, whole: string): string {
  const { path, schema, value } = innermost(error);
  const steps = path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const place = steps.join(".").slice(0, 200) || whole;
  return `${place} ${value === undefined ? "is required: it " : ""}must be ${expected(schema)}`;
}

/** Of a value that may also be null, what is wrong with it as the other thing. */
function innermost(error: ValueError): ValueError {
  if (error.value === null || error.value === undefined) return error;
  const choices = error.errors.map((each) => each.First()).filter((each) => each?.schema.type !== "null");
  const only = choices.length === 1 ? choices[0] : undefined;
  return only ? innermost(only) : error;
}

function expected(schema: TSchema): string {
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return `one of ${schema.enum.join(", ")}`;
  if (schema.anyOf) return schema.anyOf.map(expected).join(" or ");
  const { minimum: from, maximum: to, minLength, maxLength, minItems, maxItems, format, pattern } = schema;
  const article = schema.type === "integer" ? "an integer" : "a number";
  switch (schema.type) {
    case "integer":
    case "number":
      if (from === undefined) return to === undefined ? article : `${article} of at most ${to}`;
      return to === undefined ? `${article} of at least ${from}` : `${article} from ${from} to ${to}`;
    case "string": {
      const what =
        format === "uuid"
          ? "a uuid"
          : format === "uri"
            ? `an absolute ${pattern?.includes("[tT]") ? "http(s) " : ""}URL`
            : format === "date-time"
              ? "a date and time, as in 2026-11-21T09:30:00Z"
              : minLength > 0
                ? "a text that is not blank"
                : pattern
                  ? `a text that matches ${pattern}`
                  : "a text";
      return maxLength === undefined ? what : `${what}, of at most ${maxLength} characters`;
    }
    case "array":
      if (maxItems === undefined) return "a list";
      return minItems === undefined ? `a list of at most ${maxItems}` : `a list of ${minItems} to ${maxItems}`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    default:
      return "an object";
  }
}
