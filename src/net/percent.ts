/** Decodes the percent-encoding of a text; null if it is invalid. */
export function decodePercent(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
