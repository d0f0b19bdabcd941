import type http from "node:http";
import net from "node:net";
import { hostOf } from "../../net/edits.ts";
import { GuardError } from "../../net/failure.ts";
import { type CheckedAddress, connectTimeout, toDestination, toLookup } from "../../net/http-request.ts";
import type { Mapping } from "../../net/mapping.ts";
import { refuse } from "../../net/proxy.ts";
import { resolve } from "../../net/resolve.ts";
import { splice } from "../../net/tunnel.ts";
import { connectMs, type EgressPolicy, requirePermission, runExchange } from "./exchange.ts";
import { toSource } from "./headers.ts";

/** Opens a tunnel (CONNECT) to a host that the run may reach and that its urlMap doesn't map. */
export async function openTunnelTo(
  policy: EgressPolicy,
  { url: target = "" }: http.IncomingMessage,
  socket: net.Socket,
  head: Buffer,
  callId: string | null,
): Promise<void> {
  const [, port] = /^[^/?#@\s]+:(\d+)$/.exec(target) ?? [];
  const url = port === undefined ? null : URL.parse(`${port === "80" ? "http" : "https"}://${target}/`);
  if (!url) return refuse({ socket }, 400, "CONNECT needs a host and port, such as registry.npmjs.org:443.");
  const request = { method: "CONNECT", url, callId, source: toSource(undefined), client: { socket } };
  await runExchange(policy, request, async (exchange) => {
    const objection = mappingObjection(policy.mapping, url) ?? editsObjection(policy, url);
    if (objection) throw new GuardError("refused", url.href, objection);
    const socketPath = policy.siteSocketOf(url);
    if (socketPath === null) requirePermission(policy, url);
    const options =
      socketPath === null
        ? toConnectOptions(url, await resolve(url, policy.addressPolicy, policy.lookup, exchange.signal))
        : { path: socketPath };
    const upstream = await dial(url, options, exchange.signal);
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    exchange.status = 200;
    await splice(socket, upstream, { clientHead: head, signal: exchange.signal, onChunk: exchange.onChunk });
  });
}

/** Why a tunnel to a mapped host is refused; null if the urlMap does not map it. */
function mappingObjection(mapping: Mapping, url: URL): string | null {
  const httpUrl = new URL(`http://${url.host}/`);
  const isHttpMapped = mapping.toMappedUrlWithoutTokens(httpUrl) !== null;
  const alternative = isHttpMapped ? httpUrl : mapping.toMappedUrlWithoutTokens(url);
  if (alternative === null) return null;
  return `the urlMap of this run maps ${url.host} to another URL, which a tunnel cannot follow; request ${alternative.href} instead`;
}

/** Why a tunnel is refused because the run edits pages of its host; null if the run edits none of them. */
function editsObjection({ edits }: EgressPolicy, url: URL): string | null {
  if (!edits?.hosts.has(hostOf(url))) return null;
  return `this run edits pages of ${url.host}, which a tunnel hides; request http://${url.host}/ instead`;
}

const toConnectOptions = (url: URL, addresses: CheckedAddress[]): net.TcpNetConnectOpts => ({
  ...toDestination(url, addresses),
  lookup: toLookup(addresses),
});

/** Connects to a socket, or to the first address that accepts. */
async function dial(url: URL, options: net.NetConnectOpts, signal: AbortSignal): Promise<net.Socket> {
  signal.throwIfAborted();
  const socket = net.connect({ ...options, allowHalfOpen: true });
  const { promise, resolve: onConnect, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason);
  const timer = setTimeout(() => reject(connectTimeout(url, connectMs)), connectMs);
  signal.addEventListener("abort", onAbort);
  socket.once("connect", onConnect);
  socket.on("error", reject);
  try {
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
