import { Type } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { decodePercent } from "../net/percent.ts";

/** Query of a REST list: `limit` 1 to 1000 (default 100), `offset` 0 to 100000 (default 0). */
export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items to return" }),
  ),
  offset: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: 100_000 }), Type.Null()], {
      default: 0,
      description: "Number of items to skip; empty or null means 0",
    }),
  ),
};

/** The requested page of a list. */
export const pageOf = ({ limit, offset }: { limit?: number; offset?: number | null }, defaultLimit = 100): Page => ({
  limit: limit ?? defaultLimit,
  offset: offset ?? 0,
});

/** Which rows of a list to return. */
export type Page = { limit: number; offset: number };

/** A page of a list, and the total number of rows. */
export type Paged<T> = { items: T[]; total: number };

/** One page of a list. The list is short enough to be read as a whole. */
export const paginate = <T>(rows: T[], { limit, offset }: Page): Paged<T> => ({
  items: rows.slice(offset, offset + limit),
  total: rows.length,
});

/** A list as a REST response, with the page in the body and the total in X-Total-Count. */
export function listResponse<T>(set: { headers: Record<string, unknown> }, { items, total }: Paged<T>): T[] {
  set.headers["x-total-count"] = String(total);
  return items;
}

/** The format of each number in a query. */
const numberPatterns: Record<string, RegExp> = {
  ...Object.fromEntries(["limit", "offset", "fromSeq", "beforeSeq", "attempt"].map((key) => [key, /^\d{1,15}$/])),
  ...Object.fromEntries(["minScore", "maxScore"].map((key) => [key, /^\d{1,15}(\.\d{1,15})?$/])),
};

/**
 * Converts numbers in a query string, so that one schema serves both REST and MCP. Only plain digits, and decimals for scores, are converted. Other
 * values stay unchanged, and the schema rejects them. Throws bad_request for a repeated key.
 */
export function readQueryNumbers(query: Record<string, unknown>, url: string): void {
  const search = url.split("?", 2)[1]?.split("#", 1)[0] ?? "";
  if (search === "") return;
  const keys = search
    .split("&")
    .map((pair) => pair.split("=", 1)[0] ?? "")
    .map((key) => decodePercent(key.replaceAll("+", " ")) ?? key);
  const keysBefore = new Set<string>();
  for (const key of keys) {
    if (keysBefore.has(key)) throw invalidField(key, "given more than once; send it once");
    keysBefore.add(key);
  }
  for (const [key, pattern] of Object.entries(numberPatterns)) {
    const value = query[key];
    if (key === "offset" && (value === "" || value === "null")) query[key] = 0;
    else if (typeof value === "string" && pattern.test(value)) query[key] = Number(value);
  }
}
