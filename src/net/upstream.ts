import { promises as dns } from "node:dns";
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import type { AllowRule } from "../config/allow-rules.ts";
import { createAddressPolicy } from "./addresses.ts";
import { toGuardError } from "./failure.ts";
import { hostnameOf, openRequest, portOf } from "./http-request.ts";
import { resolve } from "./resolve.ts";

type UpstreamRequest = {
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
  /** The private addresses that the operator allows, for a URL that an organization set; null for the operator's own URL. */
  allow: readonly AllowRule[] | null;
};

type OwnInit = Omit<UpstreamRequest, "allow"> & { method: string };

const connectMs = 10_000;
const agents = { "http:": new http.Agent(), "https:": new https.Agent() };

/**
 * Posts JSON to a model server. Redirects are not followed, so the key goes nowhere else. There is no timeout, but the caller's signal ends the
 * request. Throws a GuardError for an address that is not allowed.
 */
export async function openUpstream(url: string, { headers, body, signal, allow }: UpstreamRequest): Promise<Response> {
  const init = {
    method: "POST",
    // The response is uncompressed, so that the stream can be parsed as it passes.
    headers: { ...headers, "content-type": "application/json", "accept-encoding": "identity" },
    body,
    signal,
  };
  if (allow) return await openGuarded(new URL(url), init, allow);
  return await fetch(url, { ...init, redirect: "manual", timeout: false });
}

/** The address is resolved, checked and connected to in one place, because Bun's fetch would resolve it again. */
async function openGuarded(url: URL, init: OwnInit, allow: readonly AllowRule[]): Promise<Response> {
  const { signal, body, ...requestOptions } = init;
  const lookup = (hostname: string) => dns.lookup(hostname, { all: true });
  const addresses = await resolve(url, createAddressPolicy(allow), lookup, signal);
  const agent = agents[url.protocol as keyof typeof agents];
  const request = openRequest({ ...requestOptions, url, addresses, agent, connectMs });
  const stop = () => request.destroy(new Error("aborted"));
  signal.addEventListener("abort", stop);
  request.once("close", () => signal.removeEventListener("abort", stop));
  try {
    const answer = await new Promise<http.IncomingMessage>((done, fail) => {
      request.once("response", done);
      request.on("error", fail);
      request.end(body);
    });
    const headers = Object.entries(answer.headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as [string, string]] : [],
    );
    const status = answer.statusCode ?? 0;
    if (status < 200 || [204, 205, 304].includes(status)) throw new Error(`status ${status} without a body`);
    return new Response(toStream(answer, signal), { status, headers });
  } catch (error) {
    request.destroy();
    throw toGuardError(error, url, false);
  }
}

/** The stream fails if the response is cut. Bun would end the body of a destroyed request as if it were complete. */
function toStream(answer: http.IncomingMessage, signal: AbortSignal): ReadableStream<Uint8Array> {
  const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream({
    async pull(stream) {
      const { value, done } = await chunks.next();
      if (!done) return stream.enqueue(value);
      signal.throwIfAborted();
      if (!answer.complete) throw new Error("the connection was closed before the response was complete");
      stream.close();
    },
    cancel: () => void answer.destroy(),
  });
}

/** Why a URL can't be reached, before its name is resolved: it has a private address, localhost or another port. null: it can be. */
export function objectionToUrl(url: string, allow: readonly AllowRule[]): string | null {
  const parsed = new URL(url);
  const host = hostnameOf(parsed);
  const port = portOf(parsed);
  const policy = createAddressPolicy(allow);
  // These names are the loopback address on every machine (RFC 6761).
  const address = /(^|\.)localhost\.?$/.test(host) ? "127.0.0.1" : host;
  return isIP(address) === 0 ? policy.objectionToPort(host, port) : policy.objection(host, address, port);
}

/** A fetch over a unix socket. The host of the URL is ignored. `onResponse` gets each response first. */
export const viaSocket = (unix: string, onResponse?: (response: Response) => void): typeof fetch => {
  const send = async (url: string | URL | Request, init?: RequestInit) => {
    const response = await fetch(url, { ...init, unix, timeout: false });
    onResponse?.(response);
    return response;
  };
  return Object.assign(send, { preconnect: fetch.preconnect });
};
