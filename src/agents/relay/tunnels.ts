import type http from "node:http";
import net from "node:net";
import tls from "node:tls";
import type { Authority } from "./authority.ts";
import { type Call, splice } from "./forwarding.ts";
import { isLoopback, portOf, type RunHosts } from "./run-hosts.ts";

type Options = {
  egressPath: string;
  authority: Authority;
  hosts: RunHosts;
  /** Accepts a decrypted connection, on which HTTP requests arrive. */
  accept: (socket: net.Socket) => void;
};

/** The inside of a tunnel: the origin of its requests, and who opened it. */
type Tunnel = { place: URL; scheme: "http" | "https"; credentials: string | undefined };

const established = "HTTP/1.1 200 Connection Established\r\n\r\n";
/** The first byte of a TLS handshake. */
const handshake = 0x16;

/** The tunnels (CONNECT) of programs: those to the run's own hosts end here, the others at the egress proxy. */
export function createTunnels({ egressPath, authority, hosts, accept }: Options) {
  const tunnels = new WeakMap<object, Tunnel>();
  /** The bridge authenticates each connection in its first request only. */
  const introduced = new WeakMap<object, string>();
  const sockets = new Set<net.Socket>();

  function keep(socket: net.Socket): void {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  }

  function credentialsOf({ headers, socket }: http.IncomingMessage): string | undefined {
    const credentials = headers["proxy-authorization"] ?? introduced.get(socket);
    if (credentials !== undefined) introduced.set(socket, credentials);
    return credentials;
  }

  /** Lets the egress proxy open or reject a tunnel. */
  function pass(target: string, credentials: string | undefined, socket: net.Socket, head: Buffer): void {
    const outer = net.connect({ path: egressPath, allowHalfOpen: true });
    keep(outer);
    const authorization = credentials === undefined ? "" : `Proxy-Authorization: ${credentials}\r\n`;
    outer.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`);
    outer.write(head);
    splice(socket, outer);
  }

  async function decrypt(socket: net.Socket, { place, ...rest }: Tunnel): Promise<void> {
    const hostname = place.hostname.replace(/^\[|\]$/g, "");
    const aliases = isLoopback(place.hostname) ? ["localhost", "127.0.0.1", "::1"] : [];
    const leaf = await authority.leafOf([...new Set([hostname, ...aliases])]);
    const inner = new tls.TLSSocket(socket, { isServer: true, ...leaf, ALPNProtocols: ["http/1.1"] });
    keep(inner);
    tunnels.set(inner, { place, ...rest });
    accept(inner);
  }

  return {
    open(request: http.IncomingMessage, socket: net.Socket, head: Buffer): void {
      keep(socket);
      const target = request.url ?? "";
      const place = /^[^/?#@\s]+:\d+$/.test(target) ? URL.parse(`https://${target}/`) : null;
      const credentials = credentialsOf(request);
      if (!place || !hosts.owns(place.hostname, portOf(place))) {
        pass(target, credentials, socket, head);
        return;
      }
      socket.write(established);
      if (head.length > 0) socket.unshift(head);
      // Peeks at the first bytes, which the TLS or HTTP server then reads.
      socket.once("readable", () => {
        const first: Buffer | null = socket.read();
        if (first === null) return;
        socket.unshift(first);
        const scheme = first[0] === handshake ? "https" : "http";
        const tunnel: Tunnel = { place, scheme, credentials };
        if (scheme === "https") {
          decrypt(socket, tunnel);
          return;
        }
        tunnels.set(socket, tunnel);
        accept(socket);
      });
    },

    /** The URL of a request; null if it has none. */
    callOf(request: http.IncomingMessage): Call | null {
      const asked = request.url ?? "";
      const tunnel = tunnels.get(request.socket);
      if (!tunnel) {
        const url = /^https?:\/\//i.test(asked) ? URL.parse(asked) : null;
        return url && { url: url.href, credentials: credentialsOf(request) };
      }
      const url = asked.startsWith("/") ? URL.parse(hostIn(tunnel, request.headers.host) + asked) : null;
      return url && { url: url.href, credentials: tunnel.credentials };
    },

    close(): void {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The origin of a tunnel. On loopback it is the one that the client names, because one port has several names there. */
function hostIn({ place, scheme }: Tunnel, host = ""): string {
  const named = isLoopback(place.hostname) ? URL.parse(`${scheme}://${host}/`) : null;
  if (named && isLoopback(named.hostname) && named.port === place.port) return named.origin;
  return new URL(`${scheme}://${place.hostname}:${portOf(place)}`).origin;
}
