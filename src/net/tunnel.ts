import net from "node:net";

const maxHeadBytes = 64 * 1024;
const headEnd = "\r\n\r\n";

/** The error if a proxy refused a tunnel. `head`: the start of its response; empty if the proxy closed the connection or the start is too long. */
export class TunnelRefused extends Error {
  constructor(readonly head: string) {
    super("the proxy did not open the tunnel");
  }
}

type TunnelRequest = {
  /** The unix socket of the proxy. */
  path: string;
  /** Host and port. */
  target: string;
  /** The value of the Proxy-Authorization header. */
  authorization: string | undefined;
};

/** The request for a tunnel (CONNECT). */
export function tunnelRequest({ target, authorization }: Omit<TunnelRequest, "path">): string {
  const credentials = authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credentials}\r\n`;
}

/** Opens a tunnel through a proxy. Resolves to a paused socket, once the host is connected. Throws TunnelRefused. */
export async function openTunnel(request: TunnelRequest): Promise<net.Socket> {
  const socket = net.connect({ path: request.path, allowHalfOpen: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (text = "") => reject(new TunnelRefused(text));
  const onClose = () => refuse();
  let head = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(headEnd);
    if (end < 0) return head.length > maxHeadBytes ? refuse() : undefined;
    socket.off("data", onData);
    socket.pause();
    const text = head.toString("latin1", 0, end);
    if (!/^HTTP\/1\.1 200 /.test(text)) return refuse(text);
    const rest = head.subarray(end + headEnd.length);
    if (rest.length > 0) socket.unshift(rest);
    resolve();
  };
  socket.on("data", onData);
  for (const event of ["error", "close"]) socket.on(event, onClose);
  socket.write(tunnelRequest(request));
  try {
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    for (const event of ["error", "close"]) socket.off(event, onClose);
  }
}

/**
 * Called with each chunk before it is passed on. `in` comes from the server, and `out` from the client. If the hook aborts the signal, the chunk is
 * not passed on.
 */
export type ChunkHook = (chunk: Buffer, direction: "in" | "out") => void;

type SpliceOptions = {
  /** What the client and the server have already sent. */
  clientHead?: Buffer;
  serverHead?: Buffer;
  /** When it aborts, its reason ends the connection. */
  signal?: AbortSignal;
  onChunk?: ChunkHook;
};

/**
 * Relays bytes in both directions, no faster than the slower side reads them. A side that has ended still receives. Resolves when one side has
 * closed. Throws the reason of the signal, or the error of a connection.
 */
export async function splice(client: net.Socket, server: net.Socket, options: SpliceOptions = {}): Promise<void> {
  const { signal = new AbortController().signal, onChunk = () => {} } = options;
  const { promise: closed, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason);
  const carry = (from: net.Socket, to: net.Socket, direction: "in" | "out", head?: Buffer) => {
    const onData = (chunk: Buffer) => {
      onChunk(chunk, direction);
      if (signal.aborted || to.write(chunk)) return;
      from.pause();
      to.once("drain", () => from.resume());
    };
    from.on("data", onData);
    from.on("end", () => to.end());
    from.on("error", reject);
    from.once("close", resolve);
    from.resume();
    // The socket reads what it receives on a later tick, so this comes first.
    if (head && head.length > 0) onData(head);
  };
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    carry(client, server, "out", options.clientHead);
    carry(server, client, "in", options.serverHead);
    if (client.destroyed || server.destroyed) resolve();
    await closed;
    for (const socket of [client, server]) socket.destroySoon();
  } catch (error) {
    for (const socket of [client, server]) socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
