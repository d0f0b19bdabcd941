import { type Static, type TObject, Type } from "@sinclair/typebox";
import type { Caller } from "../auth/gate.ts";
import type { Paged } from "../paging.ts";
import { Nullable } from "../schema.ts";

/** One request of a client: who asks, whether it is still there, and a way to say how far the work is, for a client that wants to hear it. */
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
  /** When to use it, and when another. */
  description: string;
  input: I;
  output: O;
  annotations: Annotations;
  /** It says things before its result: progress. */
  streams?: boolean;
  run(args: Static<I>, call: Call): Static<O> | Promise<Static<O>>;
};

export type Tool = ToolOf<TObject, TObject>;

/** A tool as a value; made here only so that its arguments and result get their types from its schemas. */
export const tool = <I extends TObject, O extends TObject>(value: ToolOf<I, O>): Tool => value as unknown as Tool;

/** It reads what this service has stored, and nothing else. */
export const readOnly: Annotations = { readOnlyHint: true, openWorldHint: false };

/** Arguments of a tool that lists: `limit` 1 to 100 (default 20), `offset`. */
export const pageArguments = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000, default: 0 })),
};

/** What a tool that lists gives beside its rows. */
export const pageResult = {
  total: Type.Integer({ description: "Rows on all pages" }),
  nextOffset: Nullable(Type.Integer({ description: "offset of the next page; null at the end" })),
};

export const toPage = ({ limit = 20, offset = 0 }: { limit?: number; offset?: number }) => ({ limit, offset });

/** Characters of JSON that the rows of one result may have: about 10,000 tokens, which every client passes on whole. */
const maxChars = 40_000;

/** The first of `rows` that fit into one result; at least one. */
export function fitting<T>(rows: T[]): T[] {
  let chars = 0;
  const end = rows.findIndex((row, i) => {
    chars += JSON.stringify(row).length;
    return chars > maxChars && i > 0;
  });
  return end < 0 ? rows : rows.slice(0, end);
}

/** Rows of a page under their name, with what is needed to ask for the next one. */
export function toRows<K extends string, T>(name: K, { items, total }: Paged<T>, offset = 0) {
  const rows = fitting(items);
  const next = offset + rows.length;
  return { [name]: rows, total, nextOffset: rows.length > 0 && next < total ? next : null } as Record<K, T[]> & {
    total: number;
    nextOffset: number | null;
  };
}

/** An error of the protocol, for a request that is not one of ours: JSON-RPC's own numbers. */
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

export const invalidParams = (message: string) => new RpcError(-32602, message);

/** An answer that a JSON-RPC client reads, to a request that no server of the protocol sees. */
export const rpcRefusal = (status: number, code: number, message: string, headers: Record<string, string> = {}) =>
  Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });

/** The answer to anything but POST: there are no sessions to listen to or to end. */
export const refuseMethod = () =>
  rpcRefusal(405, -32000, "Method not allowed: send JSON-RPC messages by POST", { allow: "POST" });
