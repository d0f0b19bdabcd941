import { type Static, type TObject, Type } from "@sinclair/typebox";
import type { Caller } from "../http/caller.ts";
import type { KeyScope } from "../http/operation.ts";
import type { Paged } from "../http/paging.ts";
import { Nullable } from "../schema.ts";

/** One request of a client: its caller, an abort signal, and a progress callback. */
export type Call = {
  caller: Caller;
  signal: AbortSignal;
  progress(done: number, total: number, message: string): void;
};

/** Hints for the client about what a tool does. */
type Annotations = {
  readOnlyHint: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint: boolean;
};

type ToolOf<I extends TObject, O extends TObject> = {
  name: string;
  title: string;
  /** What the tool does, when to use it, and when to use another one. */
  description: string;
  input: I;
  output: O;
  annotations: Annotations;
  /** The scope that the key needs. Default: `read` for a tool that only reads, otherwise `run`. */
  scope?: KeyScope;
  /** Whether it reports progress before its result. */
  streams?: boolean;
  run(args: Static<I>, call: Call): Static<O> | Promise<Static<O>>;
};

/** A tool with any input and output. */
export type Tool = ToolOf<TObject, TObject>;

/** Defines a tool. It is a function only so that TypeScript infers the types of arguments and result from the schemas. */
export const tool = <I extends TObject, O extends TObject>(value: ToolOf<I, O>): Tool => value as unknown as Tool;

/** Annotations of a tool that only reads stored data. */
export const readOnly: Annotations = { readOnlyHint: true, openWorldHint: false };

/** Paging arguments: `limit` 1 to 100 (default 20), `offset`. */
export const pageArguments = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000, default: 0 })),
};

/** Paging fields of a result. */
export const pageResult = {
  total: Type.Integer({ description: "Across all pages" }),
  nextOffset: Nullable(Type.Integer({ description: "null on the last page" })),
};

/** The page that the input of a tool requests. The default is the first 20 rows. */
export const toPage = ({ limit = 20, offset = 0 }: { limit?: number; offset?: number }) => ({ limit, offset });

/**
 * Maximum characters of JSON in one result. They are fewer than 6,000 tokens (IDs and numbers have 2.5 characters per token), which no client
 * truncates.
 */
const maxChars = 15_000;
/** Characters for the paging fields and the punctuation around the rows. */
const reservedChars = 300;

/** As many of `rows` as fit into one result together with `rest`, but at least one. */
export function takeFitting<T>(rows: T[], rest: object = {}): T[] {
  let chars = reservedChars + JSON.stringify(rest).length;
  const end = rows.findIndex((row, i) => {
    chars += JSON.stringify(row).length + 1;
    return chars > maxChars && i > 0;
  });
  return end < 0 ? rows : rows.slice(0, end);
}

/** A copy of a value, in which texts longer than `maxTextChars` are shortened. A note says how much was removed. */
export function shortenTexts<T>(value: T, maxTextChars: number): T {
  if (typeof value === "string") {
    if (value.length <= maxTextChars) return value;
    const omitted = value.length - maxTextChars;
    return `${value.slice(0, maxTextChars).toWellFormed()}… (${omitted} characters omitted)` as T;
  }
  if (Array.isArray(value)) return value.map((item) => shortenTexts(item, maxTextChars)) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shortenTexts(item, maxTextChars)])) as T;
}

/** The rows of a page under their name, with paging fields. */
export function toResultPage<K extends string, T>(name: K, { items, total }: Paged<T>, offset = 0) {
  const rows = takeFitting(items);
  const next = offset + rows.length;
  return { [name]: rows, total, nextOffset: rows.length > 0 && next < total ? next : null } as Record<K, T[]> & {
    total: number;
    nextOffset: number | null;
  };
}

/** Error codes of JSON-RPC 2.0, section 5.1. `methodNotAllowed`: a code from the range for servers. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  methodNotAllowed: -32000,
} as const;

/** A protocol error with one of `rpcCodes` or with a code of MCP. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** The error of a request with invalid parameters. */
export const invalidParams = (message: string) => new RpcError(rpcCodes.invalidParams, message);

/** A JSON-RPC error response to a request that does not reach the MCP server. */
export const rpcRefusal = (status: number, code: number, message: string, headers: Record<string, string> = {}) =>
  Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });

/** The response to any method other than POST. The endpoint has no sessions, so there is nothing to stream or delete. */
export const refuseMethod = () =>
  rpcRefusal(405, rpcCodes.methodNotAllowed, "Method not allowed: send JSON-RPC messages with POST", { allow: "POST" });

/** Not validated as a UUID: any other text gives not_found, and that error says where to find IDs. */
export const promptIdArgument = Type.String({ description: "ID from list_prompts, title or URL" });
export const slugArgument = Type.String({ maxLength: 500, description: "From list_reports, or a URL" });

/** An object without descriptions of its fields, because every word of the tool list costs tokens in every conversation. */
export const Undescribed = Type.Object({});
