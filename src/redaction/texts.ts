type MapOptions = {
  /** Maximum length of a list. */
  maxItems?: number;
  /** The property name of the value. */
  key?: string;
  /** Changes the names of properties. */
  rename?: (name: string) => string;
};

/** A value of JSON with every text changed. `key`: property name of a text or of the list around it; empty at the top. */
export function mapTexts(
  value: unknown,
  change: (text: string, key: string) => string,
  { maxItems, key = "", rename = (name) => name }: MapOptions = {},
): unknown {
  if (typeof value === "string") return change(value, key);
  const mapItem = (item: unknown, name: string) => mapTexts(item, change, { maxItems, key: name, rename });
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item) => mapItem(item, key));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [rename(name), mapItem(item, name)]));
}
