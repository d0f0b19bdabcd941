import { type Fields, object, text } from "./fields.ts";

const maxChars = 300;

/** The message in the error body of a provider, on one line; the whole body if it has an unknown format. Agents add a status before it. */
export function messageIn(body: string): string {
  const fields = parseBody(body);
  const message =
    text(object(fields.error).message) || text(fields.error) || text(fields.message) || text(fields.detail);
  return (message || body).replace(/\s+/g, " ").trim().slice(0, maxChars);
}

function parseBody(body: string): Fields {
  try {
    const value: unknown = JSON.parse(body.replace(/^\s*\d{3}\s+/, ""));
    // The body of a failed stream of Google is a list.
    return object(Array.isArray(value) ? value[0] : value);
  } catch {
    return {};
  }
}
