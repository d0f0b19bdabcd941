import type { Places } from "../../net/addresses.ts";
import { GuardError, type GuardErrorKind, toGuardError } from "../../net/failure.ts";
import type { HostList } from "../../net/hosts.ts";
import type { Mapping } from "../../net/mapping.ts";
import type { Lookup } from "../../net/resolve.ts";
import type { Slots } from "../../net/slots.ts";
import type { AgentEvent } from "../agent.ts";
import type { Source } from "../reader.ts";

export type EgressLimits = {
  requests: number;
  /** Request bodies and everything sent into tunnels. */
  bytesOut: number;
  bytesIn: number;
  /** At the same time; further requests wait. */
  concurrent: number;
  /** For one request or tunnel, including bodies. */
  requestMs: number;
};

/** Egress rules and usage of a run. */
export type Passage = {
  token: string;
  limits: EgressLimits;
  hosts: HostList;
  mapping: Mapping;
  places: Places;
  slots: Slots;
  lookup: Lookup;
  now: () => number;
  /** Aborts when the run ends. */
  ended: AbortController;
  purpose: "task" | "page";
  /** Whether a URL belongs to an MCP server of the run. */
  isMcp(url: URL): boolean;
  /** Whether a host belongs to the product. Its response text is stored with the request. */
  isProduct(hostname: string): boolean;
  onEvent(event: AgentEvent): void;
  used: Record<Counted, number>;
};

const counted = {
  requests: { limit: "egress_requests", unit: "requests" },
  bytesOut: { limit: "egress_bytes_out", unit: "bytes" },
  bytesIn: { limit: "egress_bytes_in", unit: "bytes" },
};
type Counted = keyof typeof counted;

export type ProxiedRequest = ReturnType<typeof startRequest>;

/** Maximum time to connect. */
export const connectMs = 10_000;

const statuses: Partial<Record<GuardErrorKind, number>> = { refused: 403, too_large: 429, timeout: 504 };

/** The HTTP status that reports a failure to the client. */
export const statusOf = ({ kind }: GuardError): number => statuses[kind] ?? 502;

/** Starts a request and records it when it ends. `callId`: ID of the tool call that sends it. */
export function startRequest(
  passage: Passage,
  method: string,
  url: URL,
  { callId, source }: { callId: string | null; source: Source },
) {
  const stopped = new AbortController();
  const stop = (error: GuardError) => stopped.abort(error);
  const { requestMs } = passage.limits;
  const record = {
    status: null as number | null,
    bytes: 0,
    bytesOut: 0,
    contentType: null as string | null,
    mappedUrl: null as string | null,
    body: undefined as string | undefined,
  };
  const proxied = {
    url,
    record,
    stop,
    signal: stopped.signal,
    failure: null as GuardError | null,
    /** Runs the work within the limits of the run and emits its `http` event. */
    async run(work: () => Promise<void>): Promise<void> {
      const startedAt = passage.now();
      const over = () => stop(new GuardError("aborted", url.href, "The run has ended"));
      passage.ended.signal.addEventListener("abort", over);
      const timer = setTimeout(
        () => stop(new GuardError("timeout", url.href, `${url.host} did not finish within ${requestMs / 1000} s`)),
        requestMs,
      );
      let release = () => {};
      try {
        count(passage, "requests", 1, url);
        release = await passage.slots.take("", () => stopped.signal.reason, stopped.signal);
        await work();
      } catch (error) {
        proxied.failure = stopped.signal.aborted
          ? stopped.signal.reason
          : toGuardError(error, url, record.status !== null);
      } finally {
        release();
        clearTimeout(timer);
        passage.ended.signal.removeEventListener("abort", over);
      }
      const error = proxied.failure && { kind: proxied.failure.kind, message: proxied.failure.message };
      const ms = passage.now() - startedAt;
      const fixed = passage.isMcp(url)
        ? { id: callId, provenance: "given" as const, foundOn: null, purpose: "mcp" as const }
        : { id: callId, ...source, purpose: passage.purpose };
      const { bytesOut, body, ...answer } = record;
      const sent = { ...(bytesOut > 0 && { bytesOut }), ...(body !== undefined && { body }) };
      passage.onEvent({ type: "http", method, url: url.href, ...answer, ...sent, ms, ...fixed, error });
    },
  };
  return proxied;
}

/** Adds to the usage of the run. Throws GuardError over a limit, and reports it the first time. */
export function count({ used, limits, onEvent }: Passage, what: Counted, amount: number, url: URL): void {
  const before = used[what];
  used[what] += amount;
  if (used[what] <= limits[what]) return;
  const { limit, unit } = counted[what];
  if (before <= limits[what]) onEvent({ type: "limit", limit, value: limits[what], unit });
  const done = `the run has used its limit of ${limits[what]} ${what === "bytesOut" ? "bytes out" : what === "bytesIn" ? "bytes in" : unit}`;
  throw new GuardError("too_large", url.href, `${done}, so the request to ${url.host} was blocked`);
}

/** Throws GuardError unless the run may reach the host. */
export function permit({ hosts }: Passage, url: URL): void {
  if (!hosts.permits(url.hostname)) throw new GuardError("refused", url.href, hosts.objection(url.hostname));
}
