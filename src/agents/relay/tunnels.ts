import type http from "node:http";
import net from "node:net";
import tls from "node:tls";
import { portOf } from "../../net/http-request.ts";
import { splice, tunnelRequest } from "../../net/tunnel.ts";
import type { Authority } from "./authority.ts";
import type { Destination } from "./forward.ts";
import { isLoopback, type RunHosts } from "./run-hosts.ts";

/** The tunnels (CONNECT) of programs. Tunnels to the run's own hosts end here. All others end at the egress proxy. */
export type Tunnels = {
  egressPath: string;
  authority: Authority;
  hosts: RunHosts;
  /** Accepts a decrypted connection, on which HTTP requests arrive. */
  accept: (socket: net.Socket) => void;
  /** For each connection inside of a tunnel, its tunnel. */
  tunnelByConnection: WeakMap<object, Tunnel>;
  /** The credentials of each connection. The program that forwards connections out of the sandbox sends them only in the first request. */
  credentialsByConnection: WeakMap<object, string>;
  /** The connections to destroy at the end. */
  sockets: Set<net.Socket>;
};

/** The inside of a tunnel: the origin of its requests, and who opened it. */
type Tunnel = { host: URL; scheme: "http" | "https"; credentials: string | undefined };

/** The first byte of a TLS handshake. */
const tlsHandshake = 0x16;

/** Opens a tunnel for a program. */
export function openTunnel(tunnels: Tunnels, request: http.IncomingMessage, socket: net.Socket, head: Buffer): void {
  track(tunnels, socket);
  const target = request.url ?? "";
  const host = /^[^/?#@\s]+:\d+$/.test(target) ? URL.parse(`https://${target}/`) : null;
  const credentials = rememberedCredentials(tunnels, request);
  if (!host || !tunnels.hosts.owns(host.hostname, portOf(host))) {
    // The egress proxy opens or refuses it.
    const egress = net.connect({ path: tunnels.egressPath, allowHalfOpen: true });
    track(tunnels, egress);
    egress.write(tunnelRequest({ target, authorization: credentials }));
    splice(socket, egress, { clientHead: head }).catch(() => {});
    return;
  }
  socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
  if (head.length > 0) socket.unshift(head);
  // Peeks at the first bytes, which the TLS or HTTP server then reads.
  socket.once("readable", () => {
    const first: Buffer | null = socket.read();
    if (first === null) return;
    socket.unshift(first);
    acceptInside(tunnels, socket, { host, scheme: first[0] === tlsHandshake ? "https" : "http", credentials });
  });
}

/** The URL of a request and the credentials of its sender; null if it has no URL. */
export function destinationOf(tunnels: Tunnels, request: http.IncomingMessage): Destination | null {
  const address = request.url ?? "";
  const tunnel = tunnels.tunnelByConnection.get(request.socket);
  if (!tunnel) {
    const url = /^https?:\/\//i.test(address) ? URL.parse(address) : null;
    return url && { url: url.href, credentials: rememberedCredentials(tunnels, request) };
  }
  const url = address.startsWith("/") ? URL.parse(originOf(tunnel, request.headers.host) + address) : null;
  return url && { url: url.href, credentials: tunnel.credentials };
}

function track({ sockets }: Tunnels, socket: net.Socket): void {
  sockets.add(socket);
  socket.on("error", () => socket.destroy());
  socket.on("close", () => sockets.delete(socket));
}

/** The credentials of a request or of an earlier one on its connection. Stores them for later requests. */
function rememberedCredentials(
  { credentialsByConnection }: Tunnels,
  { headers, socket }: http.IncomingMessage,
): string | undefined {
  const credentials = headers["proxy-authorization"] ?? credentialsByConnection.get(socket);
  if (credentials !== undefined) credentialsByConnection.set(socket, credentials);
  return credentials;
}

/** Accepts the requests in a tunnel, after the TLS handshake if its scheme is https. */
function acceptInside(tunnels: Tunnels, socket: net.Socket, tunnel: Tunnel): void {
  const inner = tunnel.scheme === "https" ? decrypt(socket, tunnel.host, tunnels.authority) : socket;
  if (inner !== socket) track(tunnels, inner);
  tunnels.tunnelByConnection.set(inner, tunnel);
  tunnels.accept(inner);
}

function decrypt(socket: net.Socket, host: URL, authority: Authority): tls.TLSSocket {
  const hostname = host.hostname.replace(/^\[|\]$/g, "");
  const aliases = isLoopback(host.hostname) ? ["localhost", "127.0.0.1", "::1"] : [];
  const leaf = authority.leafOf([...new Set([hostname, ...aliases])]);
  return new tls.TLSSocket(socket, { isServer: true, ...leaf, ALPNProtocols: ["http/1.1"] });
}

/** The origin of a tunnel. On loopback, it is the origin that the client names, because several names lead to one port there. */
function originOf({ host, scheme }: Tunnel, hostHeader = ""): string {
  const namedUrl = isLoopback(host.hostname) ? URL.parse(`${scheme}://${hostHeader}/`) : null;
  if (namedUrl && isLoopback(namedUrl.hostname) && namedUrl.port === host.port) return namedUrl.origin;
  return new URL(`${scheme}://${host.hostname}:${portOf(host)}`).origin;
}
