import type http from "node:http";
import net from "node:net";
import { GuardError } from "../../net/failure.ts";
import { type CheckedAddress, lookupOf, notAccepted } from "../../net/http-request.ts";
import type { Mapping } from "../../net/mapping.ts";
import { resolve } from "../../net/resolve.ts";
import { failureHeader, failureMessageHeader } from "../../net/tunnels.ts";
import { connectMs, count, type Passage, type ProxiedRequest, permit, startRequest, statusOf } from "./connection.ts";
import { toSource } from "./headers.ts";
import { rawAnswer } from "./raw-answer.ts";

/** Opens a tunnel (CONNECT) to a host that the run may reach and that its urlMap doesn't map. */
export async function tunnel(
  passage: Passage,
  request: http.IncomingMessage,
  socket: net.Socket,
  head: Buffer,
  callId: string | null,
): Promise<void> {
  socket.on("error", () => {});
  const [, port] = /^[^/?#@\s]+:(\d+)$/.exec(request.url ?? "") ?? [];
  const url = port === undefined ? null : URL.parse(`${port === "80" ? "http" : "https"}://${request.url}/`);
  if (!url) {
    socket.end(rawAnswer(400, "CONNECT needs a host and port, such as registry.npmjs.org:443."));
    return;
  }
  const proxied = startRequest(passage, "CONNECT", url, { callId, source: toSource(undefined) });
  socket.on("close", () => {
    if (proxied.record.status === null) proxied.stop(new GuardError("aborted", url.href, "The client disconnected"));
  });
  await proxied.run(async () => {
    const elsewhere = unmappable(passage.mapping, url);
    if (elsewhere) throw new GuardError("refused", url.href, elsewhere);
    permit(passage, url);
    const addresses = await resolve(url, passage.places, passage.lookup, proxied.signal);
    const upstream = await dial(url, addresses, proxied.signal);
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    proxied.record.status = 200;
    await join(passage, proxied, socket, upstream, head);
  });
  if (!proxied.failure) return;
  if (proxied.record.status === null && !socket.destroyed) socket.end(refusal(proxied.failure));
  else socket.destroy();
}

function refusal(failure: GuardError): string {
  const { kind, message } = failure;
  const headers = `${failureHeader}: ${kind}\r\n${failureMessageHeader}: ${encodeURIComponent(message.toWellFormed())}\r\n`;
  return rawAnswer(statusOf(failure), `evald: ${message}`, headers);
}

/** The error message for a tunnel to a mapped host; null if the urlMap does not map it. */
function unmappable(mapping: Mapping, url: URL): string | null {
  const open = new URL(`http://${url.host}/`);
  const real = mapping.toShown(url) ?? mapping.toShown(open);
  if (!real) return null;
  const instead = mapping.toShown(open) ? open.href : real.href;
  return `the urlMap of this run maps ${url.host} to another URL, which a tunnel cannot follow; request ${instead} instead`;
}

/** Connects to the first address that accepts. */
async function dial(url: URL, addresses: CheckedAddress[], signal: AbortSignal): Promise<net.Socket> {
  signal.throwIfAborted();
  const port = Number(url.port) || (url.protocol === "http:" ? 80 : 443);
  const socket = net.connect({
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port,
    lookup: lookupOf(addresses),
    allowHalfOpen: true,
  });
  const { promise, resolve: connected, reject } = Promise.withResolvers<void>();
  const stop = () => reject(signal.reason);
  const timer = setTimeout(() => reject(notAccepted(url, connectMs)), connectMs);
  signal.addEventListener("abort", stop);
  socket.once("connect", connected);
  socket.on("error", reject);
  try {
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Relays bytes in both directions until one side closes. */
export async function join(
  passage: Passage,
  proxied: ProxiedRequest,
  inner: net.Socket,
  outer: net.Socket,
  head: Buffer,
): Promise<void> {
  const url = proxied.url;
  const gone = Promise.withResolvers<void>();
  const carry = (from: net.Socket, to: net.Socket, what: "bytesIn" | "bytesOut", first?: Buffer) => {
    const take = (chunk: Buffer) => {
      if (what === "bytesOut") proxied.record.bytesOut += chunk.length;
      try {
        count(passage, what, chunk.length, url);
      } catch (error) {
        proxied.stop(error as GuardError);
        return;
      }
      if (what === "bytesIn") proxied.record.bytes += chunk.length;
      if (to.write(chunk)) return;
      from.pause();
      to.once("drain", () => from.resume());
    };
    if (first && first.length > 0) take(first);
    from.on("data", take);
    from.on("end", () => to.end());
    from.on("error", gone.reject);
    from.once("close", () => gone.resolve());
  };
  const stop = () => gone.reject(proxied.signal.reason);
  proxied.signal.addEventListener("abort", stop);
  carry(inner, outer, "bytesOut", head);
  carry(outer, inner, "bytesIn");
  try {
    proxied.signal.throwIfAborted();
    await gone.promise;
    for (const socket of [inner, outer]) socket.destroySoon();
  } catch (error) {
    for (const socket of [inner, outer]) socket.destroy();
    throw error;
  } finally {
    proxied.signal.removeEventListener("abort", stop);
  }
}
