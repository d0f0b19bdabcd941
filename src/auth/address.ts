import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Who is at the other end of a connection; undefined: it is gone. */
export type Peer = () => string | undefined;

const peers = new WeakMap<Request, Peer>();

/** Notes how to learn who is at the other end of the connection of a request: few are asked for it. */
export const notePeer = (request: Request, peer: Peer): void => {
  peers.set(request, peer);
};

/** The address of whoever sent a request. A private peer is a proxy of the operator's, whose word about its client is taken. */
export function addressOf(request: Request): string {
  const peer = peers.get(request)?.() ?? "127.0.0.1";
  const forwardedFor = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "";
  return isIP(forwardedFor) !== 0 && isPrivate(peer) ? forwardedFor : peer;
}

const isPrivate = (address: string) =>
  ["loopback", "private", "uniqueLocal", "linkLocal"].includes(ipaddr.process(address).range());

/** What belongs to one holder: an IPv4 address, or the 64 bits of IPv6 within which a host may choose. */
export function networkOf(address: string): string {
  const parsed = ipaddr.process(address);
  return parsed.kind() === "ipv4" ? parsed.toString() : parsed.toNormalizedString().split(":").slice(0, 4).join(":");
}

/** An address as people write it. */
export const shortAddress = (address: string): string =>
  ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
