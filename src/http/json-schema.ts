/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

/** A choice between a value and null as one schema of two types, which readers and generators handle better. Other schemas are unchanged. */
export function mergeNull(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  const [value, none] = Array.isArray(anyOf) && anyOf.length === 2 ? (anyOf as JsonObject[]) : [];
  if (none?.type !== "null" || typeof value?.type !== "string") return schema;
  const merged = { ...value, ...rest, type: [value.type, "null"] };
  return Array.isArray(value.enum) ? { ...merged, enum: [...value.enum, null] } : merged;
}
