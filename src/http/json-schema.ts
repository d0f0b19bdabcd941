/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

/**
 * Turns a choice between a value and null into one schema with two types, because readers and generators handle that better. Returns other schemas
 * unchanged.
 */
export function mergeNull(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  const [value, none] = Array.isArray(anyOf) && anyOf.length === 2 ? (anyOf as JsonObject[]) : [];
  if (none?.type !== "null" || typeof value?.type !== "string") return schema;
  const merged = { ...value, ...rest, type: [value.type, "null"] };
  return Array.isArray(value.enum) ? { ...merged, enum: [...value.enum, null] } : merged;
}
