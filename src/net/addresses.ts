import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { AllowRule } from "../config/allow-rules.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A host rule has a `name`; an address or range rule has a `range`. */
type Rule = {
  name: string | null;
  range: [Address, number] | null;
  isSingleAddress: boolean;
  /** null: every port. */
  port: number | null;
  /** Only for rules about the service itself: the loopback port on which it serves its public pages. */
  publicPort: number | null;
};

const publicV6: [Address, number] = [ipaddr.parse("2000::"), 3];

/** Cloud metadata endpoints, which serve credentials. Only a rule for the exact address and port allows them. */
const metadataAddresses = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
].map((text) => ipaddr.parse(text).toNormalizedString());

const rangeNames: Record<string, string> = {
  unspecified: "an unspecified address",
  broadcast: "a broadcast address",
  multicast: "a multicast address",
  linkLocal: "a link-local address",
  loopback: "a loopback address",
  carrierGradeNat: "a carrier-grade NAT address",
  private: "a private address",
  uniqueLocal: "a unique local address",
  rfc6052: "a NAT64 address",
  rfc6145: "a translated address",
  "6to4": "a 6to4 address",
  teredo: "a Teredo address",
};

export type AddressPolicy = ReturnType<typeof createAddressPolicy>;

/** Decides by the operator's rules which addresses may be reached. Throws an Error that quotes the first invalid range. */
export function createAddressPolicy(allow: readonly AllowRule[]) {
  const rules = allow.map(toRule);
  const remedyFor = (host: string, port: number) => allowRemedy(allow, host, port);
  const closedPortMessage = (host: string, port: number) =>
    `${host} cannot be reached on port ${port}: only ports 80 and 443 are allowed; ${remedyFor(host, port)}`;
  return {
    /** Why no address of a host may be reached on a port, whatever the host resolves to; null: an address may be. `host` is without brackets. */
    objectionToPort: (host: string, port: number): string | null =>
      isWebPort(port) || rules.some((rule) => rule.port === null || rule.port === port)
        ? null
        : closedPortMessage(host, port),
    /** Why connecting to the address under that host name is not allowed; null if it is. `host` without brackets. */
    objection(host: string, address: string, port: number): string | null {
      const parsedAddress = parse(address);
      if (!parsedAddress) return `${host} resolves to ${address}, which is not an IP address`;
      const subject = isIP(host) ? `${address} is` : `${host} resolves to ${address}, which is`;
      const description = describeNonPublic(parsedAddress);
      if (metadataAddresses.includes(parsedAddress.toNormalizedString())) {
        const isAllowed = rules.some(
          (rule) => rule.isSingleAddress && rule.port === port && contains(rule.range, parsedAddress),
        );
        if (isAllowed) return null;
        const what = parsedAddress.range() === "unicast" ? "a cloud metadata address" : description;
        // The message has no value to paste, because these addresses serve credentials.
        return `${subject} ${what}; only EVALD_ALLOW_PRIVATE with its exact address and port allows it`;
      }
      if (rules.some((rule) => matches(rule, toName(host), parsedAddress, port))) return null;
      if (description) return `${subject} ${description}; ${remedyFor(host, port)}`;
      return isWebPort(port) ? null : closedPortMessage(host, port);
    },
    /** The loopback port to connect to instead, if the address and port belong to the service itself; null: they don't. */
    findPublicPort(host: string, address: string, port: number): number | null {
      const parsedAddress = parse(address);
      const ownRule = rules.find(
        (rule) =>
          rule.publicPort !== null && parsedAddress !== null && matches(rule, toName(host), parsedAddress, port),
      );
      return ownRule?.publicPort ?? null;
    },
  };
}

/** Whether a rule names the host, or has the range of its address. `host` without brackets. */
export function isListed(allow: readonly AllowRule[], host: string): boolean {
  const address = parse(host);
  return allow
    .map(toRule)
    .some(({ name, range }) => name === toName(host) || (address !== null && contains(range, address)));
}

const isWebPort = (port: number) => port === 80 || port === 443;

const matches = (rule: Rule, name: string, address: Address, port: number) =>
  (rule.port === null || rule.port === port) && (rule.name === name || contains(rule.range, address));

const toName = (host: string) => host.toLowerCase().replace(/\.$/, "");

/** How the operator allows an address, with the exact value. `host` without brackets. */
export function allowRemedy(allow: readonly AllowRule[], host: string, port: number): string {
  const value = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const hasOthers = allow.some(({ publicPort }) => publicPort === undefined);
  return `to allow it, the operator can ${hasOthers ? `add ${value} to EVALD_ALLOW_PRIVATE` : `set EVALD_ALLOW_PRIVATE=${value}`}`;
}

function toRule({ host, port, ...rule }: AllowRule): Rule {
  const [base = "", bits] = host.split("/");
  const address = isIP(base) ? parse(base) : null;
  const publicPort = rule.publicPort ?? null;
  if (!address) return { name: toName(host), range: null, isSingleAddress: false, port, publicPort };
  const addressBits = address.kind() === "ipv4" ? 32 : 128;
  const prefixLength = bits === undefined ? addressBits : Number(bits);
  if (!(prefixLength <= addressBits))
    throw new Error(`${host} is not a valid range: the prefix length must be 0 to ${addressBits}`);
  return { name: null, range: [address, prefixLength], isSingleAddress: bits === undefined, port, publicPort };
}

function contains(range: Rule["range"], address: Address): boolean {
  return range !== null && range[0].kind() === address.kind() && address.match(range[0], range[1]);
}

/** Parses an address; an IPv4-mapped IPv6 address becomes IPv4. */
function parse(text: string): Address | null {
  if (!isIP(text)) return null;
  return ipaddr.process(text);
}

function describeNonPublic(address: Address): string | null {
  const range = address.range();
  // Only 2000::/3 is assigned for public use; the rest includes embedded IPv4 addresses.
  const isAssigned = address.kind() === "ipv4" || contains(publicV6, address);
  if (range === "unicast" && isAssigned) return null;
  return rangeNames[range] ?? "a reserved address";
}
