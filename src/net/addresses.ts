import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { AllowRule } from "../config.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A name rule has a `name`, a rule for one address or a range has a `range`. */
type Rule = { name: string | null; range: [Address, number] | null; single: boolean; port: number | null };

const publicV6: Rule = { name: null, range: [ipaddr.parse("2000::"), 3], single: false, port: null };

/** Where clouds hand out credentials. A range or a name opens none of them, only the very address with its port. */
const metadata = [
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

/** Decides on places by the operator's rules. */
export type Places = {
  /** False: no rule could open that port, whatever the name resolves to. */
  portPossible(port: number): boolean;
  /** Why nobody may connect to that address under that host name; null if one may. `host` without brackets. */
  objection(host: string, address: string, port: number): string | null;
};

/** Compiles the rules of the operator. Throws an Error that quotes the first range that is none. */
export function createPlaces(allow: readonly AllowRule[]): Places {
  const rules = allow.map(toRule);
  const usual = (port: number) => port === 80 || port === 443;
  return {
    portPossible: (port) => usual(port) || rules.some((rule) => rule.port === null || rule.port === port),
    objection(host, address, port) {
      const parsed = parse(address);
      if (!parsed) return `${host} resolves to ${address}, which is not an address`;
      const name = host.toLowerCase().replace(/\.$/, "");
      const secret = metadata.includes(parsed.toNormalizedString());
      const open = rules.some((rule) => {
        if (secret) return rule.single && rule.port === port && contains(rule, parsed);
        return (rule.port === null || rule.port === port) && (rule.name === name || contains(rule, parsed));
      });
      if (open) return null;
      const what = secret && parsed.range() === "unicast" ? "a cloud metadata address" : nonPublic(parsed);
      if (what) {
        const subject = isIP(host) ? `${address} is ${what}` : `${host} resolves to ${address}, which is ${what}`;
        return `${subject}; the operator can open private addresses with EVALD_ALLOW_PRIVATE`;
      }
      return usual(port) ? null : closedPort(host, port);
    },
  };
}

/** The objection to a port that is neither 80 nor 443. */
export function closedPort(host: string, port: number): string {
  return `${host} is asked for on port ${port}, but only 80 and 443 are open; the operator can open others with EVALD_ALLOW_PRIVATE`;
}

function toRule({ host, port }: AllowRule): Rule {
  const [base = "", bits] = host.split("/");
  const address = isIP(base) ? parse(base) : null;
  if (!address) return { name: host.toLowerCase().replace(/\.$/, ""), range: null, single: false, port };
  const all = address.kind() === "ipv4" ? 32 : 128;
  const length = bits === undefined ? all : Number(bits);
  if (!(length <= all)) throw new Error(`${host} is not a range: its length must be 0 to ${all}`);
  return { name: null, range: [address, length], single: bits === undefined, port };
}

function contains({ range }: Rule, address: Address): boolean {
  return range !== null && range[0].kind() === address.kind() && address.match(range[0], range[1]);
}

/** An IPv4 address that is written as IPv6 counts as the IPv4 address that it is. */
function parse(text: string): Address | null {
  if (!isIP(text)) return null;
  return ipaddr.process(text);
}

function nonPublic(address: Address): string | null {
  const range = address.range();
  // The only part of IPv6 that is handed out to the public; the rest holds, among others, IPv4 addresses in disguise.
  const handedOut = address.kind() === "ipv4" || contains(publicV6, address);
  if (range === "unicast" && handedOut) return null;
  return rangeNames[range] ?? "a reserved address";
}
