import http from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { GuardError, type GuardErrorKind } from "./failure.ts";

/** An HTTP proxy on a unix socket that resolves and checks the hosts of tunnels, and the token that it requires. */
export type TunnelProxy = { path: string; token: string };

/** One for each protocol of a URL. */
export type Agents = { "http:": http.Agent; "https:": http.Agent };

/** Marks responses that the proxy itself generated, with the kind of failure. */
export const failureHeader = "evald-failure";

/** The message of such a response, URI-encoded. */
export const failureMessageHeader = "evald-failure-message";

const maxHeadBytes = 16 * 1024;

/** Agents whose connections are tunnels (CONNECT) through a proxy. Their failures are GuardErrors that name the host only. */
export function createTunnelAgents(proxy: TunnelProxy, options: http.AgentOptions): Agents {
  const through = (wrap: (socket: net.Socket, asked: Asked) => net.Socket) => (asked: Asked, done: Done) => {
    open(proxy, `${asked.host}:${asked.port}`).then((socket) => {
      done(null, wrap(socket, asked));
      // A host may answer before it is asked, and the request listens only on the next tick.
      setImmediate(() => socket.resume());
    }, done);
  };
  const plain = through((socket) => socket);
  const secure = through((socket, asked) =>
    tls.connect({ ...asked, socket, host: undefined, port: undefined, path: undefined }),
  );
  return {
    "http:": Object.assign(new http.Agent(options), { createConnection: plain }),
    "https:": Object.assign(new https.Agent(options), { createConnection: secure }),
  };
}

type Asked = tls.ConnectionOptions & { host: string; port: number };
type Done = (error: Error | null, socket?: net.Socket) => void;

/** Resolves to a paused socket, once the host is connected. */
async function open({ path, token }: TunnelProxy, name: string): Promise<net.Socket> {
  // A host is an IPv6 address if it has a colon before that of the port.
  const place = name.replace(/^(?!\[)(.*:.*)(:\d+)$/, "[$1]$2");
  const socket = net.connect({ path });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (kind: GuardErrorKind, message: string) => reject(new GuardError(kind, place, message));
  const lost = () => fail("unreachable", `${place} cannot be reached: the proxy of the service has closed`);
  let head = Buffer.alloc(0);
  const take = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) {
      if (head.length > maxHeadBytes) lost();
      return;
    }
    socket.off("data", take);
    socket.pause();
    const text = head.toString("latin1", 0, end);
    if (/^HTTP\/1\.1 200 /.test(text)) {
      const first = head.subarray(end + 4);
      if (first.length > 0) socket.unshift(first);
      resolve();
      return;
    }
    const kind = headerOf(text, failureHeader);
    if (kind === null) lost();
    else fail(kind as GuardErrorKind, decodeURIComponent(headerOf(text, failureMessageHeader) ?? ""));
  };
  socket.on("data", take);
  socket.on("error", lost);
  socket.on("close", lost);
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\nProxy-Authorization: Bearer ${token}\r\n\r\n`);
  try {
    await promise;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    socket.off("error", lost);
    socket.off("close", lost);
  }
  return socket;
}

const headerOf = (head: string, name: string): string | null =>
  new RegExp(`^${name}: (.*)$`, "im").exec(head)?.[1]?.trim() ?? null;
