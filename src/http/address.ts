import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The address at the other end of a connection; undefined once it is closed. */
export type Peer = () => string | undefined;

const clients = new WeakMap<Request, () => string>();

/**
 * Remembers how to find the address of the client that sent a request, because few requests need the address. With `trustsProxy`, it is the last
 * address in `X-Forwarded-For`, but only if the peer has a private address. Otherwise anyone could choose their own address.
 */
export function trackClient(request: Request, peer: Peer, trustsProxy: boolean): void {
  clients.set(request, () => {
    const address = peer() ?? "127.0.0.1";
    const forwardedFor = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "";
    return trustsProxy && isIP(forwardedFor) !== 0 && isPrivate(address) ? forwardedFor : address;
  });
}

/** The IP address of the client that sent a request. */
export const addressOf = (request: Request): string => clients.get(request)?.() ?? "127.0.0.1";

/** Whether an address belongs to this machine. A proxy on this machine that doesn't forward the address of its client has such an address, too. */
export const isLoopback = (address: string): boolean => ipaddr.process(address).range() === "loopback";

const isPrivate = (address: string) =>
  ["loopback", "private", "uniqueLocal", "linkLocal"].includes(ipaddr.process(address).range());

/** The part of an address that identifies one customer: an IPv4 address, or the first 64 bits of IPv6. */
export function networkOf(address: string): string {
  const parsed = ipaddr.process(address);
  return parsed.kind() === "ipv4" ? parsed.toString() : parsed.toNormalizedString().split(":").slice(0, 4).join(":");
}

/** An IP address in its usual form. */
export const normalizeIp = (address: string): string =>
  ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
