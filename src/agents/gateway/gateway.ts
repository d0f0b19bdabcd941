import { randomBytes, timingSafeEqual } from "node:crypto";
import { rmSync } from "node:fs";
import { ownMember } from "../../schema.ts";
import type { AgentFailure } from "../agent.ts";
import { createTemporaryFolder } from "../sockets.ts";
import { type ModelRun, type ModelSpending, openAccount } from "./call-account.ts";
import { refusalResponse } from "./forward.ts";
import { answerCall, closeSession, type ModelSession } from "./model-session.ts";

/** Files that a run may fetch from `/files/<name>`, for an agent on another machine; null: the run has no such file. */
type Files = Record<string, Uint8Array | null>;

type SessionOptions = Partial<
  Pick<ModelSession, "silenceMs" | "drainMs" | "allowsWebSearch" | "takesCalls" | "waitForTurn"> & { files: Files }
>;

/** A run's access to its model: `http://gateway/<provider>/…` over the socket. The token is in the provider's own header. */
export type GatewaySession = {
  token: string;
  socketPath: string;
  spent(): ModelSpending;
  /** Why the last call failed; null: it succeeded, or there was none. */
  lastFailure(): AgentFailure | null;
  /** From now on, every response warns the caller of the model that a limit is near. */
  warn(limit: string): void;
  /** Revokes the token. Resolves when all calls of the run have finished. */
  close(): Promise<void>;
};

/**
 * The proxy between agents and models. It holds the API keys and counts usage. It starts listening with its first
 * session. `silenceMs` and `drainMs`: defaults of `ModelSession`. `maxFailures`: consecutive provider failures that end a run.
 */
export function createGateway({
  now,
  maxBodyBytes = 32 * 1024 * 1024,
  silenceMs = 300_000,
  drainMs = 10_000,
  maxFailures = 5,
}: {
  now: () => number;
  maxBodyBytes?: number;
  silenceMs?: number;
  drainMs?: number;
  maxFailures?: number;
}) {
  const sessions = new Map<string, ModelSession & { digest: Buffer; files: Files }>();
  /** The files of runs without a model. */
  const fileSets = new Map<string, { digest: Buffer; files: Files }>();
  let listener: { server: Bun.Server<undefined>; folder: string; socketPath: string } | undefined;

  /** Answers a request of a run. */
  async function answer(request: Request): Promise<Response> {
    const token = tokenOf(request.headers);
    const id = token.split(".", 1)[0] ?? "";
    const session = sessions.get(id);
    const holder = session ?? fileSets.get(id);
    if (!holder || !timingSafeEqual(holder.digest, digestOf(token)))
      return refusalResponse(401, "the token does not belong to a run in progress", "unauthorized");
    const file = request.method === "GET" && ownMember(holder.files, /\/files\/(\w+)$/.exec(request.url)?.[1] ?? "");
    if (file) return new Response(file as Uint8Array<ArrayBuffer>);
    return session
      ? answerCall(session, request)
      : refusalResponse(401, "the token belongs to a run without a model", "unauthorized");
  }

  function listen() {
    const { folder, socketPath } = createTemporaryFolder("gateway");
    try {
      const server = Bun.serve({
        unix: socketPath,
        // Typed for TCP only, but unix sockets also close idle connections without it.
        ...({ idleTimeout: 0 } as object),
        maxRequestBodySize: maxBodyBytes,
        fetch: answer,
      });
      return { server, folder, socketPath };
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /**
   * Lets one run call one model within its limits, and fetch its files. `takesCalls` false: the run only gets files, because its agent calls its
   * vendor itself, with a login. By default, calls don't wait for a turn.
   */
  function openSession(run: ModelRun & SessionOptions): GatewaySession {
    listener ??= listen();
    const { id, token } = newToken();
    const account = openAccount(run, now, maxFailures);
    const session = {
      account,
      silenceMs: run.silenceMs ?? silenceMs,
      drainMs: run.drainMs ?? drainMs,
      allowsWebSearch: run.allowsWebSearch ?? false,
      takesCalls: run.takesCalls ?? true,
      waitForTurn: run.waitForTurn ?? (async () => {}),
      closing: new AbortController(),
      activeCalls: new Set<Promise<void>>(),
      digest: digestOf(token),
      files: run.files ?? {},
    };
    sessions.set(id, session);
    return {
      token,
      socketPath: listener.socketPath,
      spent: () => ({ ...account.spent }),
      lastFailure: () => account.lastFailure,
      warn: (limit) => void account.nearLimits.add(limit),
      close() {
        sessions.delete(id);
        return closeSession(session);
      },
    };
  }

  /** Lets a run without a model fetch its files until `close`. */
  function openFiles(files: Files): { token: string; close(): void } {
    const { id, token } = newToken();
    fileSets.set(id, { digest: digestOf(token), files });
    return { token, close: () => void fileSets.delete(id) };
  }

  return {
    answer,
    openSession,
    openFiles,
    /** Closes every connection. Close the sessions first. */
    async close(): Promise<void> {
      await listener?.server.stop(true);
      if (listener) rmSync(listener.folder, { recursive: true, force: true });
      listener = undefined;
    },
  };
}

function newToken(): { id: string; token: string } {
  const id = randomBytes(9).toString("base64url");
  return { id, token: `${id}.${randomBytes(32).toString("base64url")}` };
}

const digestOf = (token: string): Buffer => new Bun.CryptoHasher("sha256").update(token).digest();

/** The token of a request, in any provider's own header; empty: none. */
export const tokenOf = (headers: Headers): string =>
  headers.get("x-api-key") ??
  headers.get("x-goog-api-key") ??
  /^bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ??
  "";
