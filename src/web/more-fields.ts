/** Extra properties of a URL that the form has no input for; they pass through unchanged. */
export function readMore(json: string): object {
  try {
    const value: unknown = json === "" ? {} : JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}
