/** Formats a CSV row (RFC 4180). Text that a spreadsheet would read as a formula is prefixed with an apostrophe (OWASP, CSV injection). */
export function toCsv(values: readonly (string | number | null | undefined)[]): string {
  const cells = values.map((value) => {
    const text = typeof value === "string" && /^[=+\-@＝＋－＠\t\r\n]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${cells.join(",")}\r\n`;
}
