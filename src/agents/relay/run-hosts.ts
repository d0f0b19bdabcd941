import { editsOf, hostOf } from "../../net/edits.ts";
import { createHostList } from "../../net/hosts.ts";
import { portOf } from "../../net/http-request.ts";
import { createMapping, parseUrlMap } from "../../net/mapping.ts";
import type { BridgeRoute } from "../sandbox/bridge.ts";
import { hostUrlsOf, type Task } from "../task.ts";

/** The hosts that a relay answers for. */
export type RunHosts = {
  /** Whether the relay handles a tunnel to the host: it is one of the run's hosts, its urlMap maps it, or its pages are edited. */
  owns(hostname: string, port: number): boolean;
  /** Host names that programs may look up. */
  names: string[];
  /** Ports of a sandbox that lead to a port of a host. A loopback URL has the same port. Each port of another host has a port of its own. */
  routes: BridgeRoute[];
};

/** Routes start at this port, because programs are unlikely to listen there. */
const firstRoutePort = 23_128;

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/** Whether programs reach a host without a proxy, on their own loopback. `hostname` as a URL spells it. */
export const isLoopback = (hostname: string): boolean =>
  loopbackNames.includes(hostname) || hostname.endsWith(".localhost");

/** Whether a host is an IP address, which programs need not look up. */
const isIpAddress = (hostname: string) => /^\[|^[\d.]+$/.test(hostname);

/** The hosts of a run: hosts of its docs, product and checks, hosts in its urlMap, and hosts of further URLs. */
export function runHostsOf(task: Task, furtherUrls: readonly string[] = []): RunHosts {
  const { docsUrls, urls: productUrls } = hostUrlsOf(task);
  const taskUrls = { docsUrls, urls: [...productUrls, ...furtherUrls] };
  const hosts = createHostList({ ...taskUrls, operatorHosts: [] });
  const mapping = createMapping(task.urlMap);
  const edits = editsOf(task);
  const mappedOrigins = parseUrlMap(task.urlMap).map(({ origin }) => origin);
  const urls = [...taskUrls.docsUrls, ...taskUrls.urls, ...mappedOrigins].flatMap((url) => URL.parse(url) ?? []);
  const names = [...new Set(urls.map(({ hostname }) => hostname))].filter((name) => !isIpAddress(name));
  const loopbackHosts = new Map(
    urls.filter(({ hostname }) => isLoopback(hostname)).map((url) => [portOf(url), url.hostname] as const),
  );
  const remotePorts = names
    .filter((name) => !isLoopback(name))
    .flatMap((hostname) => {
      const namedPorts = urls.filter((url) => url.hostname === hostname).map(portOf);
      return [...new Set([80, 443, ...namedPorts])].map((hostPort) => ({ hostname, hostPort }));
    });
  return {
    owns: (hostname, port) =>
      hosts.isOwn(hostname) ||
      ["http", "https"]
        .map((scheme) => new URL(`${scheme}://${hostname}:${port}/`))
        .some((url) => mapping.toMappedUrl(url) !== null || edits?.hosts.has(hostOf(url))),
    names,
    routes: [
      ...[...loopbackHosts].map(([port, hostname]) => ({ port, hostname, hostPort: port })),
      ...remotePorts.map((host, i) => ({ port: firstRoutePort + i, ...host })),
    ],
  };
}
