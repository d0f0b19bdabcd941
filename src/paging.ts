import { Type } from "@sinclair/typebox";
import { badRequest } from "./errors.ts";

/** Query of a REST list: `limit` 1 to 1000 (default 100), `offset` 0 to 100000 (default 0). */
export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Rows at most" })),
  offset: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: 100_000 }), Type.Null()], {
      default: 0,
      description: "Rows to skip; empty or null mean 0",
    }),
  ),
};

export type Page = { limit: number; offset: number };

/** A page of a list, and how many rows the whole list has. */
export type Paged<T> = { items: T[]; total: number };

const integers = new Set(["limit", "offset", "fromSeq", "beforeSeq", "minScore", "maxScore"]);

/**
 * Turns the numbers of a query string into numbers, so that one plain schema serves REST and MCP. Only plain digits count: anything else is
 * left as it is, for the schema to refuse. Throws bad_request for a key that stands twice.
 */
export function readQueryNumbers(query: Record<string, unknown>, url: string): void {
  const search = url.split("?", 2)[1]?.split("#", 1)[0] ?? "";
  const keys = search === "" ? [] : search.split("&").map((pair) => decodeKey(pair.split("=", 1)[0] ?? ""));
  const twice = keys.find((key, i) => keys.indexOf(key) !== i);
  if (twice !== undefined) throw badRequest(`${twice} stands more than once in the query; give it once`);
  for (const key of integers) {
    const value = query[key];
    if (key === "offset" && (value === "" || value === "null")) query[key] = 0;
    else if (typeof value === "string" && /^\d{1,15}$/.test(value)) query[key] = Number(value);
  }
}

function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll("+", " "));
  } catch {
    return key;
  }
}
