/** Maximum characters of a tool's input or output in JSON, because a hostile page or folder can be of any size. */
const maxEventChars = 120_000;

/** The fields of an event in a limited size. If they are too large, their texts are shortened. If that isn't enough, all of them become one text. */
export function boundFields(fields: Record<string, unknown>): Record<string, unknown> {
  const json = JSON.stringify(fields);
  if (json.length <= maxEventChars) return fields;
  const shortEntries = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? shorten(value, 20_000) : value,
  ]);
  const shortenedFields = Object.fromEntries(shortEntries);
  return JSON.stringify(shortenedFields).length <= maxEventChars ? shortenedFields : { cut: shorten(json, 20_000) };
}

/** The start and end of a long text, with a note on how much was left out. */
export function shorten(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = Math.floor(maxChars * 0.6);
  return `${text.slice(0, head)}\n… ${text.length - maxChars} characters omitted …\n${text.slice(text.length - (maxChars - head))}`;
}
