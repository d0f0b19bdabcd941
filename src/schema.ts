import { Kind, type TSchema, Type, TypeRegistry } from "@sinclair/typebox";
import type { ValueError } from "@sinclair/typebox/errors";
import { AppError, invalidField } from "./errors.ts";

export const Id = Type.String({ format: "uuid" });
export const Time = Type.String({ format: "date-time" });
export const Url = Type.String({ format: "uri" });

/** The URL that replaces a host. The check of its format takes a second for a text of a megabyte. */
export const MappedUrl = Type.String({ format: "uri", maxLength: 4000 });

/** A date, in the time zone of the organization, or a time in a query; `toInstant` reads it. */
export const Moment = (description: string) =>
  Type.String({ maxLength: 40, description: `${description}, such as 2026-11-21 or 2026-11-21T09:30:00Z` });

/**
 * Epoch milliseconds of a date and time with its offset, or of the start of a date in a time zone. Throws bad_request that
 * names the field.
 */
export function toInstant(field: string, text: string, timeZone: string): number {
  const day = text.slice(0, 10);
  const at = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  // Date.parse takes the 31st of February for the 3rd of March.
  if (Number.isNaN(at) || !new Date(Date.parse(day)).toISOString().startsWith(day))
    throw invalidField(
      field,
      "must be a date, or a date and time with an offset, such as 2026-11-21 or 2026-11-21T09:30:00Z",
    );
  if (timeZone === "UTC" || text.length > day.length) return at;
  return Temporal.PlainDate.from(day).toZonedDateTime(timeZone).epochMilliseconds;
}

/** A time in responses, ISO 8601 in UTC. Numbers are epoch milliseconds. */
export function toIso(at: number | Date): string;
export function toIso(at: number | Date | null): string | null;
export function toIso(at: number | Date | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

TypeRegistry.Set("PathId", (_, value) => typeof value === "string");

/** An ID in a path. It is documented as a UUID but not checked: any other text is simply not found. */
export const PathId = (description: string) =>
  Type.Unsafe<string>({ [Kind]: "PathId", type: "string", format: "uuid", description });

TypeRegistry.Set("Score", (_, value) => typeof value === "number" && value >= 0 && value <= 100);

/** A score in a query. Elysia would turn a plain number into a choice between a number and a text. */
export const Score = (description: string) =>
  Type.Unsafe<number>({ [Kind]: "Score", type: "number", minimum: 0, maximum: 100, description });

/** An absolute http(s) URL; `checkHttpUrl` checks what a pattern cannot. */
export const HttpUrl = (description: string) =>
  Type.String({ format: "uri", pattern: "^[hH][tT][tT][pP][sS]?://", maxLength: 2000, description });

/** Parses an absolute http(s) URL with a host; null for anything else. */
export const httpUrl = (address: string): URL | null =>
  /^https?:\/\/[^/?#\\]/i.test(address) ? URL.parse(address) : null;

/** Throws bad_request that names the field unless the value is an absolute http(s) URL with a host. */
export function checkHttpUrl(field: string, value: string): void {
  if (!httpUrl(value)) throw invalidField(field, `${JSON.stringify(value)} is not an absolute http or https URL`);
}

/** A name that a person chose, trimmed. Throws bad_request unless it has 1 to 200 characters, none of them a control character. */
export function toName(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > 200) throw invalidField("name", "must be 1 to 200 characters long");
  if (/\p{Cc}/u.test(name)) throw invalidField("name", "must not contain control characters");
  return name;
}

/** The secret part of a URL: 24 characters, 144 bits. */
export const newUrlSecret = (): string =>
  crypto.getRandomValues(new Uint8Array(18)).toBase64({ alphabet: "base64url", omitPadding: true });

/** Matches an API key anywhere in a text. */
export const keyShape = /evals_[0-9A-Za-z]{36}/;
const everyKey = new RegExp(keyShape, "g");

/** A text without API keys. */
export const redactKeys = (text: string): string => text.replace(everyKey, "evals_[redacted]");

/** A text without these secrets. */
export const redactSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text);

/** A value or null; the key is always present. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

TypeRegistry.Set<{ enum: readonly unknown[] }>("OneOf", (schema, value) => schema.enum.includes(value));

/** One of a closed list of strings. */
export const OneOf = <const T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>({
    [Kind]: "OneOf",
    type: "string",
    enum: [...values],
    ...(description === undefined ? {} : { description }),
  });

/** A bad_request that names the invalid input and says what it must be. `whole` names the value itself: `body`. */
export function invalidInput(error: ValueError, whole: string): AppError {
  const { path, schema, value } = innermost(error);
  const steps = path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const field = steps.join(".").slice(0, 200) || whole;
  const problem = `must be ${expected(schema)}`;
  if (value !== undefined) return invalidField(field, problem);
  return new AppError("bad_request", `${field} is required: it ${problem}.`, {
    field,
    problem: `required; ${problem}`,
  });
}

/** For a value that may also be null: the error against its other type. */
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
          ? "a UUID"
          : format === "uri"
            ? `an absolute ${pattern?.includes("[tT]") ? "http or https " : ""}URL`
            : format === "date-time"
              ? "a date and time, such as 2026-11-21T09:30:00Z"
              : minLength > 0
                ? "a non-empty string"
                : pattern
                  ? `a string that matches ${pattern}`
                  : "a string";
      return maxLength === undefined ? what : `${what} of at most ${maxLength} characters`;
    }
    case "array":
      if (maxItems === undefined) return "an array";
      return minItems === undefined
        ? `an array of at most ${maxItems} items`
        : `an array of ${minItems} to ${maxItems} items`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    default:
      return "an object";
  }
}
