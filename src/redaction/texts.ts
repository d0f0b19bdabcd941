/**
 * A value of JSON with every text changed. `key`: property name of a text or of the list around it; empty at the top. `items`: maximum list
 * length.
 */
export function mapTexts(
  value: unknown,
  change: (text: string, key: string) => string,
  items = Number.POSITIVE_INFINITY,
  key = "",
  rename = (name: string) => name,
): unknown {
  if (typeof value === "string") return change(value, key);
  if (Array.isArray(value)) return value.slice(0, items).map((item) => mapTexts(item, change, items, key, rename));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [rename(name), mapTexts(item, change, items, name, rename)]),
  );
}
