/** The value that a JSON Pointer (RFC 6901) names in parsed JSON; undefined: there is none. The pointer must be valid. */
export function valueAt(json: unknown, pointer: string): unknown {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce<unknown>(memberOf, json);
}

/** The member of an object or array; undefined: there is none. */
function memberOf(value: unknown, step: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  // Only these names are members of an array, but not `length` or `01`.
  if (Array.isArray(value) && !/^(0|[1-9]\d*)$/.test(step)) return undefined;
  return Object.hasOwn(value, step) ? (value as Record<string, unknown>)[step] : undefined;
}
