import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { ConfigError } from "../errors.ts";

/**
 * A private host that the operator allowed: a host name, an IP address or a CIDR range. `port` null: all ports. With `publicPort`, the host is an
 * address of the service itself. Connections then go to that loopback port, where only the public pages of the service are served.
 */
export type AllowRule = { host: string; port: number | null; publicPort?: number };

export const allowSyntax =
  "a comma-separated list of hosts, host:port pairs, IP addresses or CIDR ranges, such as docs.internal:8080,10.0.0.0/8";

/** Parses rules separated by commas. Throws ConfigError, also for an empty item, because a rule is missing there. */
export const parseAllowRules = (text: string): AllowRule[] =>
  text.trim() === "" ? [] : text.split(",").map((item) => parseAllowRule(item.trim()));

const ruleShapes = [
  // An IPv6 address in brackets: [::1], [::1]:80
  /^\[(?<host>[0-9a-f:.]+)\](?::(?<port>\d+))?$/i,
  // A host name, or an IPv4 address or range: docs.internal, docs.internal:8080, 127.0.0.1:4000, 10.0.0.0/8
  /^(?<host>[a-z0-9._-]+(?:\/\d{1,2})?)(?::(?<port>\d+))?$/i,
  // An IPv6 address or range: ::1, fd00::/8
  /^(?<host>[0-9a-f:.]*:[0-9a-f:.]*(?:\/\d{1,3})?)$/i,
];

function parseAllowRule(text: string): AllowRule {
  if (text === "") throw new ConfigError(`${allowSyntax}: one of its items is empty`);
  const groups = ruleShapes.map((shape) => shape.exec(text)?.groups).find((each) => each !== undefined);
  if (!groups) throw new ConfigError(allowSyntax);
  const { host: writtenHost = "", port } = groups;
  const host = writtenHost.toLowerCase();
  const objection = objectionToHost(host);
  if (objection) throw new ConfigError(`${allowSyntax}: ${objection}`);
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535)) throw new ConfigError("a port from 1 to 65535");
  return { host, port: port === undefined ? null : Number(port) };
}

/** A rule that lets runs reach exactly the host and port of a URL. */
export function toAllowRule(url: string): AllowRule {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || (protocol === "https:" ? 443 : 80)) };
}

/** Whether a text is a word that switches a setting on or off. Nobody would mean a host with such a name. */
export const isSwitchWord = (text: string): boolean => /^(true|false|yes|no|on|off)$/i.test(text);

/** The problem of a host, an IP address or a range; null if there is none. */
function objectionToHost(text: string): string | null {
  const [host = "", bits] = text.split("/");
  const version = isIP(host);
  if (version === 0) {
    if (isSwitchWord(host)) return `name the hosts to allow, in place of ${host}`;
    if (bits !== undefined) return `the range ${text} needs a complete IP address before the slash`;
    // If the last label of a host name is a number, URL parsers treat the name as an IPv4 address.
    return /:|(^|\.)(\d+|0x[0-9a-f]*)\.?$/.test(host) ? `${host} is not a valid IP address` : null;
  }
  if (bits === undefined) return null;
  const length = Number(bits);
  if (length > (version === 4 ? 32 : 128)) return `the prefix of ${text} is longer than the address`;
  const address = version === 6 ? ipaddr.IPv6.parse(host) : null;
  if (!address?.isIPv4MappedAddress()) return null;
  // The IPv4 address is in the last 32 of the 128 bits.
  const range = `${address.toIPv4Address()}/${Math.max(length - 96, 0)}`;
  return `${text} maps IPv4 addresses; write ${range}`;
}
