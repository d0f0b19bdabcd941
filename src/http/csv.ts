/** Formats a CSV row (RFC 4180). Text that a spreadsheet would read as a formula is prefixed with an apostrophe (OWASP, CSV injection). */
export function toCsv(values: readonly (string | number | null | undefined)[]): string {
  const cells = values.map((value) => {
    const text = typeof value === "string" && /^[=+\-@＝＋－＠\t\r\n]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${cells.join(",")}\r\n`;
}

/** A CSV file for a client of the API. */
export const toCsvResponse = (text: string, fileName: string): Response =>
  new Response(text, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${fileName}"`,
      "cache-control": "no-store",
    },
  });

/** Describes that an operation also responds with CSV. */
export function alsoCsv<T extends { detail: { responses: Record<string, { content?: object }> } }>(described: T): T {
  Object.assign(described.detail.responses["200"]?.content ?? {}, { "text/csv": { schema: { type: "string" } } });
  return described;
}
