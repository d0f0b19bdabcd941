import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The peer address of a connection; undefined: it is closed. */
export type Peer = () => string | undefined;

const peers = new WeakMap<Request, Peer>();

/** Registers how to look up the peer address of a request, because few requests need it. */
export const notePeer = (request: Request, peer: Peer): void => {
  peers.set(request, peer);
};

/** The client address of a request. If the peer is private, it is the operator's proxy, and its forwarding header is trusted. */
export function addressOf(request: Request): string {
  const peer = peers.get(request)?.() ?? "127.0.0.1";
  const forwardedFor = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "";
  return isIP(forwardedFor) !== 0 && isPrivate(peer) ? forwardedFor : peer;
}

const isPrivate = (address: string) =>
  ["loopback", "private", "uniqueLocal", "linkLocal"].includes(ipaddr.process(address).range());

/** The part of an address that identifies one customer: an IPv4 address, or the first 64 bits of IPv6. */
export function networkOf(address: string): string {
  const parsed = ipaddr.process(address);
  return parsed.kind() === "ipv4" ? parsed.toString() : parsed.toNormalizedString().split(":").slice(0, 4).join(":");
}

/** An address in its usual form. */
export const shortAddress = (address: string): string =>
  ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
