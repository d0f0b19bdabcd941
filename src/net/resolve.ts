import { isIP } from "node:net";
import type { AddressPolicy } from "./addresses.ts";
import { GuardError, toGuardError } from "./failure.ts";
import { type CheckedAddress, hostnameOf, portOf } from "./http-request.ts";

/** All addresses of a host name. */
export type Lookup = (hostname: string) => Promise<CheckedAddress[]>;

/**
 * Resolves a host to its addresses, all of which must be allowed. If one of them belongs to the service itself, only the address of its public pages
 * is returned. Throws a GuardError, "dns" or "refused", or on abort the reason of the signal.
 */
export async function resolve(
  url: URL,
  policy: AddressPolicy,
  lookup: Lookup,
  signal: AbortSignal,
): Promise<CheckedAddress[]> {
  const host = hostnameOf(url);
  const port = portOf(url);
  const family = isIP(host);
  const portObjection = family ? null : policy.objectionToPort(host, port);
  if (portObjection) throw new GuardError("refused", url.href, portObjection);
  const addresses = family ? [{ address: host, family }] : await lookUp(url, lookup(host), signal);
  for (const { address } of addresses) {
    const objection = policy.objection(host, address, port);
    if (objection) throw new GuardError("refused", url.href, objection);
  }
  for (const { address } of addresses) {
    const publicPort = policy.findPublicPort(host, address, port);
    if (publicPort !== null) return [{ address: "127.0.0.1", family: 4, port: publicPort }];
  }
  return addresses;
}

/** A DNS lookup cannot be aborted, so only the wait for it is. */
async function lookUp(
  url: URL,
  pendingAddresses: Promise<CheckedAddress[]>,
  signal: AbortSignal,
): Promise<CheckedAddress[]> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop);
  try {
    const addresses = await Promise.race([pendingAddresses, aborted]);
    if (addresses.length > 0) return addresses;
    throw Object.assign(new Error("no addresses"), { code: "ENODATA" });
  } catch (error) {
    throw error === signal.reason ? error : toGuardError(error, url, false);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
