import type { AddressPolicy } from "../../net/addresses.ts";
import type { CompiledEdits, PageEdit } from "../../net/edits.ts";
import { GuardError, type GuardErrorKind, toGuardError } from "../../net/failure.ts";
import type { HostList } from "../../net/hosts.ts";
import type { Mapping } from "../../net/mapping.ts";
import { disconnect, type Output, refuse, watchClient } from "../../net/proxy.ts";
import type { Lookup } from "../../net/resolve.ts";
import type { Slots } from "../../net/slots.ts";
import { failureHeader, failureMessageHeader } from "../../net/tunnel-agents.ts";
import type { AgentEvent } from "../agent.ts";
import type { Source } from "../reader.ts";

/** The limits of what a run sends and receives. */
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

/** What a run may reach, and what it has used of its limits. */
export type EgressPolicy = {
  token: string;
  limits: EgressLimits;
  hosts: HostList;
  mapping: Mapping;
  /** null: the run has none. */
  edits: CompiledEdits | null;
  /** The socket that answers for the host of a URL, if it is a site that exists only within the run. */
  siteSocketOf(url: URL): string | null;
  addressPolicy: AddressPolicy;
  slots: Slots;
  lookup: Lookup;
  now: () => number;
  /** Aborts when the run ends. */
  endController: AbortController;
  /** `page`: what pages in a browser request. */
  purpose: "task" | "page";
  /** Whether a URL belongs to an MCP server of the run. */
  isMcp(url: URL): boolean;
  /** Whether a host belongs to the product. Its response text is stored with the request. */
  isProduct(hostname: string): boolean;
  onEvent(event: AgentEvent): void;
  usage: Record<LimitName, number>;
};

const limitTexts = {
  requests: { limit: "egress_requests", unit: "requests", text: "requests" },
  bytesOut: { limit: "egress_bytes_out", unit: "bytes", text: "bytes out" },
  bytesIn: { limit: "egress_bytes_in", unit: "bytes", text: "bytes in" },
};
type LimitName = keyof typeof limitTexts;

/**
 * A request or tunnel in progress, and the data for its `http` event. `sent` and `body`: the texts of a request to the product and of its response.
 */
export type Exchange = {
  url: URL;
  status: number | null;
  bytes: number;
  bytesOut: number;
  contentType: string | null;
  mappedUrl: string | null;
  body: string | undefined;
  sent: string | undefined;
  edit: PageEdit | null;
  /** Aborts with a GuardError. */
  signal: AbortSignal;
  /** Ends the exchange, with the failure that its event reports. */
  stop(failure: GuardError): void;
  /** Counts bytes. Over a limit of the run, it stops the exchange. */
  onChunk(chunk: Buffer, direction: "in" | "out"): void;
};

type ExchangeRequest = {
  method: string;
  url: URL;
  /** ID of the tool call that sends the request. */
  callId: string | null;
  source: Source;
  client: Output;
};

/** Maximum time to connect. */
export const connectMs = 10_000;

const statusByFailure: Partial<Record<GuardErrorKind, number>> = { refused: 403, too_large: 429, timeout: 504 };

/** Runs `work` within the limits of the run, answers the client if it fails, and emits the `http` event of the request. */
export async function runExchange(
  policy: EgressPolicy,
  { method, url, callId, source, client }: ExchangeRequest,
  work: (exchange: Exchange) => Promise<void>,
): Promise<void> {
  const startedAt = policy.now();
  const { requestMs } = policy.limits;
  const exchange = createExchange(policy, url);
  const onEnd = () => exchange.stop(new GuardError("aborted", url.href, "The run has ended"));
  policy.endController.signal.addEventListener("abort", onEnd);
  const timer = setTimeout(() => {
    exchange.stop(new GuardError("timeout", url.href, `${url.host} did not finish within ${requestMs / 1000} s`));
  }, requestMs);
  watchClient(
    client,
    () => exchange.status !== null,
    () => exchange.stop(new GuardError("aborted", url.href, "The client disconnected")),
  );
  let failure: GuardError | null = null;
  let release = () => {};
  try {
    addUsage(policy, "requests", 1, url);
    release = await policy.slots.take("", exchange.signal);
    await work(exchange);
  } catch (error) {
    failure = exchange.signal.aborted ? exchange.signal.reason : toGuardError(error, url, exchange.status !== null);
  } finally {
    release();
    clearTimeout(timer);
    policy.endController.signal.removeEventListener("abort", onEnd);
  }
  const ms = policy.now() - startedAt;
  policy.onEvent({
    type: "http",
    method,
    id: callId,
    ...toFields(policy, exchange, source),
    ms,
    error: failure && { kind: failure.kind, message: failure.message },
  });
  if (failure) answerFailure(client, exchange, failure);
}

function createExchange(policy: EgressPolicy, url: URL): Exchange {
  const controller = new AbortController();
  const exchange: Exchange = {
    url,
    status: null,
    bytes: 0,
    bytesOut: 0,
    contentType: null,
    mappedUrl: null,
    body: undefined,
    sent: undefined,
    edit: null,
    signal: controller.signal,
    stop: (failure) => controller.abort(failure),
    onChunk(chunk, direction) {
      if (direction === "out") exchange.bytesOut += chunk.length;
      try {
        addUsage(policy, direction === "in" ? "bytesIn" : "bytesOut", chunk.length, url);
        if (direction === "in") exchange.bytes += chunk.length;
      } catch (error) {
        exchange.stop(error as GuardError);
      }
    },
  };
  return exchange;
}

/** Adds to the usage of the run. Throws GuardError over a limit, and reports it the first time. */
function addUsage({ usage, limits, onEvent }: EgressPolicy, name: LimitName, amount: number, url: URL): void {
  const before = usage[name];
  usage[name] += amount;
  if (usage[name] <= limits[name]) return;
  const { limit, unit, text } = limitTexts[name];
  if (before <= limits[name]) onEvent({ type: "limit", limit, value: limits[name], unit });
  const reason = `the run has used its limit of ${limits[name]} ${text}, so the request to ${url.host} was blocked`;
  throw new GuardError("too_large", url.href, reason);
}

function toFields({ purpose, isMcp }: EgressPolicy, exchange: Exchange, source: Source) {
  const { url, status, bytes, bytesOut, contentType, mappedUrl, body, sent, edit } = exchange;
  return {
    url: url.href,
    status,
    bytes,
    contentType,
    mappedUrl,
    ...(bytesOut > 0 && { bytesOut }),
    ...(body !== undefined && { body }),
    ...(sent !== undefined && { sent }),
    ...(edit && { edit }),
    ...(isMcp(url) ? { provenance: "given" as const, foundOn: null, purpose: "mcp" as const } : { ...source, purpose }),
  };
}

function answerFailure(client: Output, { status }: Exchange, { kind, message }: GuardError): void {
  if (status !== null) disconnect(client);
  else
    refuse(client, statusByFailure[kind] ?? 502, `evald: ${message}`, {
      [failureHeader]: kind,
      [failureMessageHeader]: encodeURIComponent(message.toWellFormed()),
    });
}

/** Throws GuardError unless the run may reach the host. */
export function requirePermission({ hosts }: EgressPolicy, url: URL): void {
  if (!hosts.permits(url.hostname)) throw new GuardError("refused", url.href, hosts.objection(url.hostname));
}
