import { createHostList } from "../../net/hosts.ts";
import { createMapping, parseUrlMap } from "../../net/mapping.ts";
import type { BridgeRoute } from "../sandbox/bridge.ts";
import { addressesOf, type Task } from "../task.ts";

export type RunHosts = {
  /** Whether the relay handles a tunnel to the host: it is one of the run's hosts, or its urlMap maps it. */
  owns(hostname: string, port: number): boolean;
  /** Host names that programs may look up. */
  names: string[];
  /** Ports of a sandbox that lead to a port of a host: those of loopback URLs, and one for each port of another host. */
  routes: BridgeRoute[];
};

/** Ports that programs are unlikely to listen on. */
const firstRoutePort = 23_128;

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/** Whether programs reach a host without a proxy, on their own loopback. `hostname` as a URL spells it. */
export const isLoopback = (hostname: string): boolean =>
  loopbackNames.includes(hostname) || hostname.endsWith(".localhost");

const isAddress = (hostname: string) => /^\[|^[\d.]+$/.test(hostname);

/** The default port of a URL is left out of it. */
export const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === "https:" ? 443 : 80);

/** The hosts of a run: of its docs, product and checks, and the keys of its urlMap. */
export function runHostsOf(task: Task): RunHosts {
  const { docsAddresses, addresses } = addressesOf(task);
  const hosts = createHostList({ docsAddresses, addresses, operatorHosts: [] });
  const mapping = createMapping(task.urlMap);
  const mapped = parseUrlMap(task.urlMap).map(({ origin }) => origin);
  const urls = [...docsAddresses, ...addresses, ...mapped].flatMap((address) => URL.parse(address) ?? []);
  const names = [...new Set(urls.map(({ hostname }) => hostname))].filter((name) => !isAddress(name));
  const local = new Map(
    urls.filter(({ hostname }) => isLoopback(hostname)).map((url) => [portOf(url), url.hostname] as const),
  );
  const remote = names
    .filter((name) => !isLoopback(name))
    .flatMap((hostname) => {
      const own = urls.filter((url) => url.hostname === hostname).map(portOf);
      return [...new Set([80, 443, ...own])].map((hostPort) => ({ hostname, hostPort }));
    });
  return {
    owns: (hostname, port) =>
      hosts.isOwn(hostname) ||
      ["http", "https"].some((scheme) => mapping.toMappedUrl(new URL(`${scheme}://${hostname}:${port}/`)) !== null),
    names,
    routes: [
      ...[...local].map(([port, hostname]) => ({ port, hostname, hostPort: port })),
      ...remote.map((host, i) => ({ port: firstRoutePort + i, ...host })),
    ],
  };
}
