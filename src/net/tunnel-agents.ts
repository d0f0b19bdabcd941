import http from "node:http";
import https from "node:https";
import type net from "node:net";
import { isIPv6 } from "node:net";
import tls from "node:tls";
import { GuardError, type GuardErrorKind } from "./failure.ts";
import { openTunnel, TunnelRefused } from "./tunnel.ts";

/** An HTTP proxy on a unix socket that resolves and checks the hosts of tunnels, and the token that it requires. */
export type TunnelProxy = { path: string; token: string };

/** One agent for each protocol of a URL. */
export type Agents = { "http:": http.Agent; "https:": http.Agent };

/** Marks responses that the proxy itself generated, with the kind of failure. */
export const failureHeader = "evald-failure";

/** The message of such a response, URI-encoded. */
export const failureMessageHeader = "evald-failure-message";

/** Agents whose connections are tunnels (CONNECT) through a proxy. Their failures are GuardErrors that name only the host. */
export function createTunnelAgents(proxy: TunnelProxy, options: http.AgentOptions): Agents {
  const createConnector =
    (wrap: (socket: net.Socket, target: Target) => net.Socket) => (target: Target, done: Done) => {
      openTunnelTo(proxy, target).then((socket) => {
        done(null, wrap(socket, target));
        // A host may answer before it is asked. The request listens only from the next tick on.
        setImmediate(() => socket.resume());
      }, done);
    };
  const connectPlain = createConnector((socket) => socket);
  const connectSecure = createConnector((socket, target) =>
    tls.connect({ ...target, socket, host: undefined, port: undefined, path: undefined }),
  );
  return {
    "http:": Object.assign(new http.Agent(options), { createConnection: connectPlain }),
    "https:": Object.assign(new https.Agent(options), { createConnection: connectSecure }),
  };
}

type Target = tls.ConnectionOptions & { host: string; port: number };
type Done = (error: Error | null, socket?: net.Socket) => void;

/** Resolves to a paused socket, once the host is connected. Throws GuardError. */
async function openTunnelTo({ path, token }: TunnelProxy, { host, port }: Target): Promise<net.Socket> {
  const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  try {
    return await openTunnel({ path, target, authorization: `Bearer ${token}` });
  } catch (error) {
    const head = error instanceof TunnelRefused ? error.head : "";
    const kind = headerOf(head, failureHeader) as GuardErrorKind | null;
    if (kind === null)
      throw new GuardError("unreachable", target, `${target} cannot be reached: the proxy of the service has closed`);
    throw new GuardError(kind, target, decodeURIComponent(headerOf(head, failureMessageHeader) ?? ""));
  }
}

const headerOf = (head: string, name: string): string | null =>
  new RegExp(`^${name}: (.*)$`, "im").exec(head)?.[1]?.trim() ?? null;
