/** A value in code, as JSON. Parts that the code doesn't write out are `unresolved`. */
export type Literal = null | boolean | number | string | Literal[] | Fields | typeof unresolved;

/** A value that only the running program knows. */
export const unresolved: unique symbol = Symbol("unresolved");

/** Stands in a text for a part that only the running program, or the reader, knows. */
export const unknownPart = "\ue000";

/** The fields of an object by name. `isOpen`: it may have others. */
export class Fields extends Map<string, Literal> {
  isOpen = false;
}

/** Placeholders of docs: `<id>`, `{id}` and `${id}`, `{{ id }}`, `YOUR_ID`. */
const placeholders = [
  "<[A-Za-z][^<>\\n]{0,60}>",
  "\\$?\\{[A-Za-z][\\w.-]{0,60}\\}",
  "\\{\\{[^{}\\n]{1,60}\\}\\}",
  "\\bYOUR[_-]\\w+",
];
const placeholder = new RegExp(placeholders.join("|"), "g");

/** Replaces the placeholders of a text. */
export const markUnknownParts = (text: string): string => text.replace(placeholder, unknownPart);

/** The value of a JSON text with unknown parts. An unknown part outside of a string is a whole value. */
export function parseJson(text: string): Literal {
  for (const candidate of [
    text,
    text.replace(new RegExp(`"[^"\n]*"|${unknownPart}`, "g"), (part) =>
      part === unknownPart ? `"${unknownPart}"` : part,
    ),
  ])
    try {
      return toLiteral(JSON.parse(candidate));
    } catch {
      // Try the other reading.
    }
  return unresolved;
}

function toLiteral(value: unknown): Literal {
  if (value === unknownPart) return unresolved;
  if (Array.isArray(value)) return value.map(toLiteral);
  if (typeof value !== "object" || value === null) return value as Literal;
  return new Fields(Object.entries(value).map(([name, each]) => [name, toLiteral(each)]));
}

/** A text; anything else is unknown. */
export const toText = (value: Literal): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : unknownPart;
