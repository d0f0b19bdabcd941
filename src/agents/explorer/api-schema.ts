import { ownMember } from "../../schema.ts";
import { object } from "../fields.ts";
import { type JsonObject, resolveRef } from "./api-references.ts";
import { Fields, type Literal, markUnknownParts, unknownPart, unresolved } from "./literals.ts";

type Schema = {
  types: string[];
  properties: JsonObject;
  required: string[];
  /** The schema of other properties, false if there may be none, null if not given. */
  others: unknown;
  items: unknown;
  /** The only values that it allows; null: any. */
  values: unknown[] | null;
  /** Limits of a number; null: none. */
  least: number | null;
  most: number | null;
  /** The most characters of a text; null: any number. */
  longest: number | null;
};

const maxDepth = 10;
/** Maximum number of schemas to join into one. */
const maxParts = 100;

/** How a call contradicts its description. `about`: the part of the call that does, as the sample writes it; "" if a part is missing. */
export type Problem = { message: string; about: string };

/** How a request's body contradicts its schema. What the sample leaves open contradicts nothing. */
export function violationsOf(document: JsonObject, schema: unknown, value: Literal, path = "", depth = 0): Problem[] {
  const known = value === unresolved || depth > maxDepth ? null : readSchema(document, schema);
  if (known === null) return [];
  const place = path === "" ? "the body" : `“${path}”`;
  if (!hasType(known.types, value))
    return [
      {
        message: `${place} is ${typeName(value)}, but the API description says ${known.types.join(" or ")}`,
        about: nameOf(path),
      },
    ];
  if (Array.isArray(value))
    return value.flatMap((each, at) => violationsOf(document, known.items, each, `${path}[${at}]`, depth + 1));
  if (!(value instanceof Fields)) return valueProblems(known, value, path);
  const names = Object.keys(known.properties);
  // Descriptions that list properties without mentioning others seldom mean to allow any other property.
  const isClosed = names.length > 0 && (known.others === null || known.others === false);
  const quoted = (list: string[]) => list.map((name) => `“${name}”`).join(", ");
  const unknown = isClosed ? [...value.keys()].filter((name) => !names.includes(name)) : [];
  const missing = value.isOpen ? [] : known.required.filter((name) => !value.has(name));
  const problems: Problem[] = [];
  if (unknown.length > 0) {
    const message = `${place} has ${quoted(unknown)}, which the API description does not define`;
    problems.push({ message, about: unknown[0]! });
  }
  if (missing.length > 0) {
    const message = `${place} lacks ${quoted(missing)}, which the API description requires`;
    problems.push({ message, about: nameOf(path) || ([...value.keys()][0] ?? "") });
  }
  for (const [name, each] of value) {
    const property = ownMember(known.properties, name) ?? known.others;
    problems.push(...violationsOf(document, property, each, path === "" ? name : `${path}.${name}`, depth + 1));
  }
  return problems;
}

/** How a value that isn't an object or list is outside of what its schema allows. */
function valueProblems({ values, least, most, longest }: Schema, value: Literal, path: string): Problem[] {
  const problem = (allowed: string) => [
    {
      message: `“${path}” is ${JSON.stringify(value)}, but the API description allows ${allowed}`,
      about: nameOf(path),
    },
  ];
  if (typeof value === "number") {
    if (most !== null && value > most) return problem(`at most ${most}`);
    if (least !== null && value < least) return problem(`at least ${least}`);
  }
  // A placeholder for a text may have any value, but several words in a row are a real text.
  if (typeof value === "string" && longest !== null && value.length > longest && /\p{L}+ \p{L}+ \p{L}/u.test(value))
    return [
      {
        message: `“${path}” has ${value.length} characters, but the API description allows at most ${longest}`,
        about: nameOf(path),
      },
    ];
  const isKnown = typeof value === "string" && /^[\w.-]{1,40}$/.test(value) && !/example|your|xxx|\.\.\./i.test(value);
  return isKnown && values !== null && !values.includes(value) ? problem(values.slice(0, 5).join(", ")) : [];
}

/** A schema with its references resolved and its parts joined; null if it has alternatives or can't be resolved. */
function readSchema(document: JsonObject, part: unknown, depth = 0, joined = { parts: 0 }): Schema | null {
  const schema = depth > maxDepth || ++joined.parts > maxParts ? null : resolveRef(document, part);
  if (schema === null || "oneOf" in schema || "anyOf" in schema || "if" in schema) return null;
  const all = Array.isArray(schema.allOf)
    ? schema.allOf.map((each) => readSchema(document, each, depth + 1, joined))
    : [];
  const parts = all.filter((each) => each !== null);
  if (parts.length < all.length) return null;
  const properties = Object.assign(
    {},
    ...parts.map((each) => each.properties),
    object(schema.properties),
  ) as JsonObject;
  const required = [
    ...parts.flatMap((each) => each.required),
    ...(Array.isArray(schema.required) ? schema.required.map(String) : []),
  ];
  const isReadOnly = (name: string) => {
    const property = object(ownMember(properties, name));
    return property.readOnly === true || resolveRef(document, property)?.readOnly === true;
  };
  const types = [schema.type].flat().filter((type) => typeof type === "string");
  const own = "patternProperties" in schema ? true : (schema.additionalProperties ?? null);
  return {
    // Without a type, null is allowed anyway.
    types: schema.nullable === true && types.length > 0 ? [...types, "null"] : types,
    properties,
    required: required.filter((name) => !isReadOnly(name)),
    others: own ?? parts.map(({ others }) => others).find((others) => others !== null) ?? null,
    items: schema.items ?? {},
    values: [schema.enum, ...parts.map(({ values }) => values)].find((each) => Array.isArray(each)) ?? null,
    least: [schema.minimum, ...parts.map(({ least }) => least)].find((each) => typeof each === "number") ?? null,
    most: [schema.maximum, ...parts.map(({ most }) => most)].find((each) => typeof each === "number") ?? null,
    longest:
      [schema.maxLength, ...parts.map(({ longest }) => longest)].find((each) => typeof each === "number") ?? null,
  };
}

/** The last name in a path of fields. */
const nameOf = (path: string): string =>
  path
    .replace(/\[\d+\]/g, "")
    .split(".")
    .at(-1)!;

function typeName(value: Literal): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (value instanceof Fields) return "object";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function hasType(types: string[], value: Literal): boolean {
  // A placeholder for a text may have any type.
  if (types.length === 0 || (typeof value === "string" && markUnknownParts(value).includes(unknownPart))) return true;
  const type = typeName(value);
  return types.includes(type) || (type === "integer" && types.includes("number"));
}
