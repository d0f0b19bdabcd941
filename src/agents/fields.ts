/** An object of JSON whose fields nobody has checked. */
export type Fields = Record<string, unknown>;

/** Whether a value is an object, and not a list. */
export const isObject = (value: unknown): value is Fields =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** The value as an object; an empty one if it is anything else. */
export const object = (value: unknown): Fields => (isObject(value) ? value : {});

/** The object that a JSON text holds; null if it holds none. */
export function parseObject(json: string): Fields | null {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** The value as a list; an empty one if it is anything else. */
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The value as text; empty if it is anything else. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The value as a number; null if it is anything else. */
export const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** The texts of a list of content blocks, or a plain text. */
export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => text(object(part).text))
        .join("");
