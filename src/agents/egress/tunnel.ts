import http from "node:http";
import net from "node:net";
import { GuardError } from "../../net/failure.ts";
import type { CheckedAddress } from "../../net/http-request.ts";
import type { Mapping } from "../../net/mapping.ts";
import { resolve } from "../../net/resolve.ts";
import { begin, connectMs, count, type Passage, permit, statusOf, type Way } from "./connection.ts";

/** Opens a tunnel (CONNECT) to a host that the run may reach and that its urlMap leaves alone. */
export async function tunnel(
  passage: Passage,
  request: http.IncomingMessage,
  socket: net.Socket,
  head: Buffer,
  callId: string | null,
): Promise<void> {
  socket.on("error", () => {});
  const url = /^[^/?#@\s]+:\d+$/.test(request.url ?? "") ? URL.parse(`https://${request.url}/`) : null;
  if (!url) {
    socket.end(rawAnswer(400, "CONNECT needs a host and port, such as registry.npmjs.org:443."));
    return;
  }
  const way = begin(passage, "CONNECT", url, callId);
  socket.on("close", () => {
    if (way.told.status === null) way.stop(new GuardError("aborted", url.href, "The client disconnected"));
  });
  await way.go(async () => {
    const elsewhere = unmappable(passage.mapping, url);
    if (elsewhere) throw new GuardError("refused", url.href, elsewhere);
    permit(passage, url);
    const addresses = await resolve(url, passage.places, passage.lookup, way.signal);
    const upstream = await dial(addresses, Number(url.port) || 443, way.signal);
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    way.told.status = 200;
    await join(passage, way, socket, upstream, head);
  });
  if (!way.failure) return;
  if (way.told.status === null && !socket.destroyed)
    socket.end(rawAnswer(statusOf(way.failure), `evald: ${way.failure.message}`));
  else socket.destroy();
}

/** The error message for a tunnel to a mapped host; null if the urlMap does not map it. */
function unmappable(mapping: Mapping, url: URL): string | null {
  const open = new URL(`http://${url.host}/`);
  const real = mapping.toReal(url) ?? mapping.toReal(open);
  if (!real) return null;
  const instead = mapping.toReal(open) ? open.href : real.href;
  return `the urlMap of this run maps ${url.host} to another URL, which a tunnel cannot follow; request ${instead} instead`;
}

/** Connects to the first address that accepts. */
async function dial(addresses: CheckedAddress[], port: number, signal: AbortSignal): Promise<net.Socket> {
  let last: unknown;
  for (const { address } of addresses) {
    signal.throwIfAborted();
    const socket = net.connect({ host: address, port, allowHalfOpen: true });
    const { promise, resolve: connected, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason);
    const timer = setTimeout(
      () => reject(Object.assign(new Error("connection timed out"), { code: "ETIMEDOUT" })),
      connectMs,
    );
    signal.addEventListener("abort", stop);
    socket.once("connect", connected);
    socket.on("error", reject);
    try {
      await promise;
      return socket;
    } catch (error) {
      socket.destroy();
      last = error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }
  throw last;
}

/** Relays bytes in both directions until one side closes. */
async function join(passage: Passage, way: Way, inner: net.Socket, outer: net.Socket, head: Buffer): Promise<void> {
  const url = way.url;
  const gone = Promise.withResolvers<void>();
  const carry = (from: net.Socket, to: net.Socket, what: "bytesIn" | "bytesOut", first?: Buffer) => {
    const take = (chunk: Buffer) => {
      if (what === "bytesOut") way.told.bytesOut += chunk.length;
      try {
        count(passage, what, chunk.length, url);
      } catch (error) {
        way.stop(error as GuardError);
        return;
      }
      if (what === "bytesIn") way.told.bytes += chunk.length;
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
  const stop = () => gone.reject(way.signal.reason);
  way.signal.addEventListener("abort", stop);
  carry(inner, outer, "bytesOut", head);
  carry(outer, inner, "bytesIn");
  try {
    way.signal.throwIfAborted();
    await gone.promise;
    for (const socket of [inner, outer]) socket.destroySoon();
  } catch (error) {
    for (const socket of [inner, outer]) socket.destroy();
    throw error;
  } finally {
    way.signal.removeEventListener("abort", stop);
  }
}

/** What a client reads where it asked for a tunnel. */
export function rawAnswer(status: number, text: string, headers = ""): string {
  const length = Buffer.byteLength(text) + 1;
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${text}\n`;
}
