import { Kind, type ObjectOptions, type TSchema, Type, TypeRegistry } from "@sinclair/typebox";
import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { AppError, invalidField } from "./errors.ts";

const wordsOfPatterns = new Map<string, string>();

/** A pattern for a schema or for the keys of a record, with words for what it allows. Errors show the words, never the pattern. */
export function shape(pattern: string, words: string): { pattern: string } {
  wordsOfPatterns.set(pattern, words);
  return { pattern };
}

/** The pattern of a map's keys if any text can be a key. It only matches the beginning. */
export const anyKey = "^";

/** A map with any text as keys. TypeBox's own pattern doesn't match line breaks, and values under keys that don't match are not checked. */
export const mapOf = <T extends TSchema>(values: T, options: ObjectOptions = {}) =>
  Type.Record(Type.String({ pattern: anyKey }), values, options);

/** Strings with more than whitespace. */
export const notBlank = shape("\\S", "a non-blank string");

/** The identity of a friction point. */
export const Fingerprint = Type.String(shape("^[0-9a-f]{16}$", "16 lowercase hexadecimal digits"));

export const Id = Type.String({ format: "uuid" });

/** Whether a text is an ID rather than a name. */
export const isId = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
export const Time = Type.String({ format: "date-time" });
export const Url = Type.String({ format: "uri" });

/** Hosts that a run can replace. */
export const maxMappedHosts = 200;

/** The URL that replaces a host. Its length is limited, because checking the format of a megabyte of text takes a second. */
export const MappedUrl = Type.String({ format: "uri", maxLength: 4000 });

/** A date, in the time zone of the organization, or a time in a query; `toInstant` reads it. */
export const Moment = (description: string) =>
  Type.String({ maxLength: 40, description: `${description}, such as 2026-11-21 or 2026-11-21T09:30:00Z` });

/** A date, alone or with a time and its offset. */
const instantShape = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** Epoch milliseconds of a date and time with its offset, or of the start of a date in a time zone. Throws bad_request, which names the field. */
export function toInstant(field: string, text: string, timeZone: string): number {
  const day = text.slice(0, 10);
  const epochMs = instantShape.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse takes the 31st of February for the 3rd of March.
  if (Number.isNaN(epochMs) || !new Date(Date.parse(day)).toISOString().startsWith(day))
    throw invalidField(
      field,
      "must be a date, or a date and time with an offset, such as 2026-11-21 or 2026-11-21T09:30:00Z",
    );
  if (timeZone === "UTC" || text.length > day.length) return epochMs;
  return Temporal.PlainDate.from(day).toZonedDateTime(timeZone).epochMilliseconds;
}

/** A time in responses, ISO 8601 in UTC. Numbers are epoch milliseconds. */
export function toIso(at: number | Date): string;
export function toIso(at: number | Date | null): string | null;
export function toIso(at: number | Date | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

TypeRegistry.Set("PathId", (_, value) => typeof value === "string");

/** An ID in a path. It is documented as a UUID but not checked: for any other text, nothing is found. */
export const PathId = (description: string) =>
  Type.Unsafe<string>({ [Kind]: "PathId", type: "string", format: "uuid", description });

TypeRegistry.Set("Score", (_, value) => typeof value === "number" && value >= 0 && value <= 100);

/** A score in a query. Elysia would turn a plain number into a choice between a number and a text. */
export const Score = (description: string) =>
  Type.Unsafe<number>({ [Kind]: "Score", type: "number", minimum: 0, maximum: 100, description });

/** Texts that begin like an http(s) URL. */
export const http = shape("^[hH][tT][tT][pP][sS]?://", "an absolute http or https URL");

/** An absolute http(s) URL; `checkHttpUrl` checks what a pattern cannot. */
export const HttpUrl = (description: string) => Type.String({ format: "uri", ...http, maxLength: 2000, description });

/** Parses an absolute http(s) URL with a host; null for anything else. */
export const httpUrl = (address: string): URL | null =>
  /^https?:\/\/[^/?#\\]/i.test(address) ? URL.parse(address) : null;

/** Throws bad_request, which names the field, unless the value is an absolute http(s) URL with a host. */
export function checkHttpUrl(field: string, value: string): void {
  if (!httpUrl(value)) throw invalidField(field, `${JSON.stringify(value)} is not an absolute http or https URL`);
}

/** A name that a person chose, trimmed. Throws bad_request unless it has 1 to 200 characters, none of them a control character. */
export function toName(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > 200) throw invalidField("name", "must be 1 to 200 characters long");
  if (/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u.test(name))
    throw invalidField("name", "must not contain control characters or marks of the writing direction");
  if (toVisibleName(name) === "") throw invalidField("name", "must contain visible characters");
  return name;
}

/** A name as it looks. Names that differ only in invisible, wide or composed characters are equal (Unicode, NFKC). */
export const toVisibleName = (name: string): string =>
  name
    .normalize("NFKC")
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "")
    .replace(/\s+/g, " ")
    .trim();

/** The member of a record by a name that others chose. Inherited members of every object, such as `constructor`, don't count. */
export const ownMember = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

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

/** A bad_request that names the invalid input and says what it must be. `whole`: the name of the value itself, such as `body`. */
export function invalidInput(error: ValueError, whole: string): AppError {
  const { type, path, schema, value } = innermost(error);
  const steps = path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const field = steps.join(".").slice(0, 200) || whole;
  if (type === ValueErrorType.ObjectAdditionalProperties || type === ValueErrorType.Never)
    return invalidField(field, unknownField(schema));
  const problem = `must be ${expected(schema)}`;
  if (value !== undefined) return invalidField(field, problem);
  return new AppError("bad_request", `${field} is required: it ${problem}.`, {
    field,
    problem: `required; ${problem}`,
  });
}

/** If a value may also be null, returns the error of its other type. */
function innermost(error: ValueError): ValueError {
  if (error.value === null || error.value === undefined) return error;
  const choices = error.errors.map((each) => each.First()).filter((each) => each?.schema.type !== "null");
  const only = choices.length === 1 ? choices[0] : undefined;
  return only ? innermost(only) : error;
}

/** What is wrong with an unknown field of an object, or of a record with a pattern for its keys. */
function unknownField({ properties = {}, patternProperties = {} }: TSchema): string {
  const [pattern] = Object.keys(patternProperties);
  if (pattern !== undefined) return `must have a name of ${wordsOfPatterns.get(pattern)}`;
  const names = Object.keys(properties);
  return `is not a known field${names.length === 0 ? "" : `; use one of ${names.join(", ")}`}`;
}

function expected(schema: TSchema): string {
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return `one of ${schema.enum.join(", ")}`;
  if (schema.anyOf) return schema.anyOf.map(expected).join(" or ");
  switch (schema.type) {
    case "integer":
      return `an integer${limitsOf(schema)}`;
    case "number":
      return `a number${limitsOf(schema)}`;
    case "string":
      return expectedText(schema);
    case "array": {
      const { minItems, maxItems, uniqueItems } = schema;
      return `an array${sizeOf("of", minItems, maxItems, "item")}${uniqueItems ? " without duplicates" : ""}`;
    }
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    default:
      return `an object${sizeOf("with", schema.minProperties, schema.maxProperties, "field")}`;
  }
}

const formats: Record<string, string> = {
  uuid: "a UUID",
  uri: "an absolute URL",
  "date-time": "a date and time, such as 2026-11-21T09:30:00Z",
};

function expectedText({ format = "", pattern, minLength = 0, maxLength }: TSchema): string {
  const kind = wordsOfPatterns.get(pattern) ?? formats[format] ?? (minLength === 1 ? "a non-empty string" : "a string");
  return kind + sizeOf("of", minLength > 1 ? minLength : undefined, maxLength, "character");
}

/** The bounds of a number: ` from 1 to 50`, ` greater than 0`. */
function limitsOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: TSchema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  const bounds = [
    ...(minimum === undefined ? [] : [`of at least ${minimum}`]),
    ...(exclusiveMinimum === undefined ? [] : [`greater than ${exclusiveMinimum}`]),
    ...(maximum === undefined ? [] : [`of at most ${maximum}`]),
    ...(exclusiveMaximum === undefined ? [] : [`less than ${exclusiveMaximum}`]),
  ];
  return bounds.length === 0 ? "" : ` ${bounds.join(" and ")}`;
}

/** The bounds of a count: ` of 1 to 20 items`. */
function sizeOf(word: string, from: number | undefined, to: number | undefined, unit: string): string {
  const units = (to ?? from) === 1 ? unit : `${unit}s`;
  if (to === undefined) return from === undefined ? "" : ` ${word} at least ${from} ${units}`;
  return ` ${word} ${from === undefined ? "at most" : `${from} to`} ${to} ${units}`;
}
