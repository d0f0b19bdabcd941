import type http from "node:http";
import net from "node:net";
import tls from "node:tls";
import { splice, tunnelRequest } from "../../net/tunnel.ts";
import type { Authority } from "./authority.ts";
import type { Call } from "./forward.ts";
import { isLoopback, portOf, type RunHosts } from "./run-hosts.ts";

type Options = {
  egressPath: string;
  authority: Authority;
  hosts: RunHosts;
  /** Accepts a decrypted connection, on which HTTP requests arrive. */
  accept: (socket: net.Socket) => void;
};

/** The inside of a tunnel: the origin of its requests, and who opened it. */
type Tunnel = { host: URL; scheme: "http" | "https"; credentials: string | undefined };

/** The first byte of a TLS handshake. */
const tlsHandshake = 0x16;

/** The tunnels (CONNECT) of programs: those to the run's own hosts end here, the others at the egress proxy. */
export function createTunnels({ egressPath, authority, hosts, accept }: Options) {
  const tunnels = new WeakMap<object, Tunnel>();
  /** The bridge authenticates each connection in its first request only. */
  const authenticated = new WeakMap<object, string>();
  const sockets = new Set<net.Socket>();

  function track(socket: net.Socket): void {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  }

  function credentialsOf({ headers, socket }: http.IncomingMessage): string | undefined {
    const credentials = headers["proxy-authorization"] ?? authenticated.get(socket);
    if (credentials !== undefined) authenticated.set(socket, credentials);
    return credentials;
  }

  /** Lets the egress proxy open or refuse a tunnel. */
  function openAtEgress(target: string, authorization: string | undefined, socket: net.Socket, head: Buffer): void {
    const egress = net.connect({ path: egressPath, allowHalfOpen: true });
    track(egress);
    egress.write(tunnelRequest({ target, authorization }));
    splice(socket, egress, { clientHead: head }).catch(() => {});
  }

  /** Accepts the requests in a tunnel, after the TLS handshake if its scheme is https. */
  async function acceptInside(socket: net.Socket, tunnel: Tunnel): Promise<void> {
    const inner = tunnel.scheme === "https" ? await decrypt(socket, tunnel.host, authority) : socket;
    if (inner !== socket) track(inner);
    tunnels.set(inner, tunnel);
    accept(inner);
  }

  return {
    open(request: http.IncomingMessage, socket: net.Socket, head: Buffer): void {
      track(socket);
      const target = request.url ?? "";
      const host = /^[^/?#@\s]+:\d+$/.test(target) ? URL.parse(`https://${target}/`) : null;
      const credentials = credentialsOf(request);
      if (!host || !hosts.owns(host.hostname, portOf(host))) {
        openAtEgress(target, credentials, socket, head);
        return;
      }
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      if (head.length > 0) socket.unshift(head);
      // Peeks at the first bytes, which the TLS or HTTP server then reads.
      socket.once("readable", () => {
        const first: Buffer | null = socket.read();
        if (first === null) return;
        socket.unshift(first);
        acceptInside(socket, { host, scheme: first[0] === tlsHandshake ? "https" : "http", credentials });
      });
    },

    /** The URL of a request; null if it has none. */
    callOf(request: http.IncomingMessage): Call | null {
      const address = request.url ?? "";
      const tunnel = tunnels.get(request.socket);
      if (!tunnel) {
        const url = /^https?:\/\//i.test(address) ? URL.parse(address) : null;
        return url && { url: url.href, credentials: credentialsOf(request) };
      }
      const url = address.startsWith("/") ? URL.parse(originOf(tunnel, request.headers.host) + address) : null;
      return url && { url: url.href, credentials: tunnel.credentials };
    },

    close(): void {
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function decrypt(socket: net.Socket, host: URL, authority: Authority): Promise<tls.TLSSocket> {
  const hostname = host.hostname.replace(/^\[|\]$/g, "");
  const aliases = isLoopback(host.hostname) ? ["localhost", "127.0.0.1", "::1"] : [];
  const leaf = await authority.leafOf([...new Set([hostname, ...aliases])]);
  return new tls.TLSSocket(socket, { isServer: true, ...leaf, ALPNProtocols: ["http/1.1"] });
}

/** The origin of a tunnel. On loopback it is the one that the client names, because one port has several names there. */
function originOf({ host, scheme }: Tunnel, hostHeader = ""): string {
  const named = isLoopback(host.hostname) ? URL.parse(`${scheme}://${hostHeader}/`) : null;
  if (named && isLoopback(named.hostname) && named.port === host.port) return named.origin;
  return new URL(`${scheme}://${host.hostname}:${portOf(host)}`).origin;
}
