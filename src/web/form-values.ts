import { type Static, type TObject, type TSchema, TypeGuard } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { invalidField } from "../errors.ts";
import { invalidInput } from "../schema.ts";

/** How a form represents a value as text. `read` gets typed text, which is not validated yet and not blank. */
export type Format = { read: (text: string) => unknown; write: (value: never) => string };

/** Formats by the name of the field. Only fields whose format doesn't follow from their type are listed. */
export type Formats = Record<string, Format>;

/** Text in which spaces matter. */
export const verbatim: Format = { read: (text) => text, write: (text: string) => text };

/** Texts separated by commas or spaces. */
const words: Format = {
  read: (text) => [...new Set(text.split(/[\s,]+/).filter((word) => word !== ""))],
  write: (texts: string[]) => texts.join(", "),
};

const oneLine = (text: string) => text.replace(/\s+/g, " ").trim();

/** One text per line. */
export const lines: Format = {
  read: (text) =>
    text
      .split("\n")
      .map(oneLine)
      .filter((line) => line !== ""),
  write: (texts: string[]) => texts.map(oneLine).join("\n"),
};

/** One NAME=value per line. */
export const assignments: Format = {
  read: (text) =>
    Object.fromEntries(
      text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .map(toAssignment),
    ),
  write: (values: Record<string, string>) =>
    Object.entries(values)
      .map(([name, value]) => `${name}=${value}`)
      .join("\n"),
};

/** A line without = has no value, and validation rejects it. */
function toAssignment(line: string): [name: string, value: string | null] {
  const nameLength = line.indexOf("=");
  return nameLength < 0 ? [line.trim(), null] : [line.slice(0, nameLength).trim(), line.slice(nameLength + 1)];
}

/** The type of a value, without null. */
export const nonNullSchema = (schema: TSchema): TSchema =>
  schema.anyOf?.find(({ type }: TSchema) => type !== "null") ?? schema;

/** The schema of a field. The field is named by its path: `workspace.setup`. Keys of a map may contain dots. */
export function schemaAt(schema: TSchema, path: string): TSchema {
  if (nonNullSchema(schema).patternProperties) return memberOf(schema, path);
  const [key = "", ...rest] = path.split(".");
  const member = memberOf(schema, key);
  return rest.length === 0 ? member : schemaAt(member, rest.join("."));
}

function memberOf(schema: TSchema, key: string): TSchema {
  const { properties = {}, patternProperties = {} } = nonNullSchema(schema);
  const member = properties[key] ?? Object.values(patternProperties)[0];
  if (member === undefined) throw new Error(`The form has no field ${key}.`);
  return member as TSchema;
}

/** Lists of texts are written as words, unless the texts come from a closed set. */
function formatOf(schema: TSchema, name: string, formats: Formats): Format | undefined {
  const { type, items } = nonNullSchema(schema);
  const isListOfTexts = type === "array" && items.type === "string" && !items.enum;
  return formats[name] ?? (isListOfTexts ? words : undefined);
}

/** Turns stored values into the fields of a form. Each member of a map or an object has its own field. */
export function toFields(schema: TObject, value: object, formats: Formats = {}): URLSearchParams {
  const form = new URLSearchParams();
  for (const name of Object.keys(schema.properties))
    writeField(form, schema, name, (value as Record<string, unknown>)[name], formats);
  return form;
}

function writeField(form: URLSearchParams, root: TObject, name: string, value: unknown, formats: Formats): void {
  if (value === undefined || value === null || value === false) return;
  const format = formatOf(schemaAt(root, name), name, formats);
  if (format) form.append(name, format.write(value as never));
  else if (Array.isArray(value)) for (const each of value) form.append(name, String(each));
  else if (typeof value !== "object") form.append(name, value === true ? "on" : String(value));
  else for (const [key, each] of Object.entries(value)) writeField(form, root, `${name}.${key}`, each, formats);
}

/**
 * The values of a form. Throws bad_request that names the field. A field that was not sent is omitted. A blank field becomes null if the schema
 * allows null.
 */
export function readForm<T extends TObject>(schema: T, form: URLSearchParams, formats: Formats = {}): Static<T> {
  return checkInput(schema, readFields(schema, form, formats));
}

/** Throws bad_request that names the field. */
export function checkInput<T extends TSchema>(schema: T, input: unknown): Static<T> {
  const error = Value.Errors(schema, input).First();
  if (!error) return input as Static<T>;
  const invalid = invalidInput(error, "form");
  const { field = "", problem = "" } = invalid;
  const needsNumber = /^must be (an integer|a number)/.test(problem);
  throw needsNumber && typeof error.value === "string"
    ? invalidField(field, `${problem}, not ${JSON.stringify(error.value)}`)
    : invalid;
}

/** The values of a form. They are not validated yet. */
export function readFields(schema: TObject, form: URLSearchParams, formats: Formats): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema.properties)
      .map(([name, each]) => [name, readField(each, form, name, formats)])
      .filter(([, value]) => value !== undefined),
  );
}

function readField(schema: TSchema, form: URLSearchParams, name: string, formats: Formats): unknown {
  const { type } = nonNullSchema(schema);
  const format = formatOf(schema, name, formats);
  if (type === "boolean") return form.has(name);
  if (type === "array" && !format) return form.getAll(name);
  if (type === "object" && !format) return readMembers(schema, form, name, formats) ?? blankValueOf(schema);
  // Browsers send CRLF as line breaks.
  const text = form.get(name)?.replaceAll("\r\n", "\n");
  if (text === undefined) return undefined;
  if (text.trim() === "") return blankValueOf(schema);
  if (format) return readFormatted(schema, format, text);
  return type === "integer" || type === "number" ? toNumber(text.trim()) : text.trim();
}

/** If only separators were typed, the list is empty. */
function readFormatted(schema: TSchema, format: Format, text: string): unknown {
  const value = format.read(text);
  return Array.isArray(value) && value.length === 0 ? blankValueOf(schema) : value;
}

/** The members of an object or a map that have a value; undefined: none has. */
function readMembers(schema: TSchema, form: URLSearchParams, name: string, formats: Formats): object | undefined {
  const prefix = `${name}.`;
  const { properties } = nonNullSchema(schema);
  const sentFields = [...form.keys()].filter((each) => each.startsWith(prefix));
  const keys: string[] = properties ? Object.keys(properties) : sentFields.map((each) => each.slice(prefix.length));
  const members = keys
    .map((key) => [key, readField(memberOf(schema, key), form, prefix + key, formats)])
    .filter(([, value]) => value !== undefined && value !== null && value !== "");
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** The value of a blank field. If it is "", validation rejects it unless the field is a text. */
function blankValueOf(schema: TSchema): null | [] | undefined | "" {
  if (schema.anyOf?.some(({ type }: TSchema) => type === "null")) return null;
  if (nonNullSchema(schema).type === "array") return [];
  return TypeGuard.IsOptional(schema) ? undefined : "";
}

/** Turns text into a number. Other text stays unchanged, and validation rejects it. */
const toNumber = (text: string): number | string => (/^\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : text);
