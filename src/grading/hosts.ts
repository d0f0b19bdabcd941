import type { SessionEvent } from "../agents/agent.ts";
import { createUrlClassifier, type UrlGroup } from "../agents/docs-urls.ts";
import { type EventOf, type Http, milestonesOf } from "./events.ts";

type SentRequest = { method: string; url: string };

/** What each host of a session is. */
export type Hosts = {
  /** Whether a request is to the product, as opposed to its docs. */
  isProduct(request: SentRequest): boolean;
  /** Whether a response is known to come from the product: nothing else could have answered. */
  isKnownProduct(response: Http): boolean;
  /** Whether a URL is on a host of the docs, which may also be one of the product. */
  isOnDocsHost(url: string): boolean;
};

/** Whether a request may change something. */
export const isWrite = ({ method }: { method: string }) => !/^(GET|HEAD|OPTIONS|CONNECT|TRACE)$/i.test(method);
const isSuccess = ({ status }: Http) => status !== null && status >= 200 && status < 300;
const isHtml = ({ contentType }: Http) => /html/i.test(contentType ?? "");
/** The path of a folder: with a slash at its end. */
const folderOf = (path: string) => `${path.replace(/\/$/, "")}/`;
const isAtOrBelow = (url: URL, other: URL) =>
  url.host === other.host && folderOf(url.pathname).startsWith(folderOf(other.pathname));
const isDocs = (group: UrlGroup) => group === "docs" || group === "shared";
const isFile = (path: string) => /\.\w{2,5}$/.test(path);

/** The hosts of a session, by what its task names, its requests, and the API descriptions that it read. */
export function hostsOfSession(session: SessionEvent[], taskRequests: Http[]): Hosts {
  const { starts = [], product = null } = milestonesOf(session, "started").at(-1)?.detail ?? {};
  return hostsOf(starts, product, taskRequests, describedServers(session, createUrlClassifier(starts, product)));
}

/** `{"openapi": …` or `openapi: …` */
const apiDescriptionStart = /^\s*\{?\s*["']?(?:openapi|swagger)["']?\s*:/;
/** The servers of an API description up to the end of their list, and the URL of one, in JSON or YAML. */
const serverList = /["']?servers["']?\s*:\s*(?:\[[^\]]*|\n(?:[ \t-].*(?:\n|$))+)/;
const serverUrl = /["']?url["']?\s*:\s*["']?(https?:\/\/[^\s"',}]+)/g;

/**
 * The hosts of the servers in the API descriptions that the docs served. A description may be cut. Hosts that could be the agent's own are left out:
 * hosts without a public name, and hosts that the agent's request for the description named.
 */
function describedServers(session: SessionEvent[], groupOf: (url: URL) => UrlGroup): Set<string> {
  const results = new Map(session.flatMap((e) => (e.type === "tool_result" ? [[e.id, e] as const] : [])));
  const hosts = session.flatMap((event) => {
    if (event.type !== "http" || event.status !== 200 || event.method !== "GET") return [];
    const url = URL.parse(event.url);
    if (url === null || !isDocs(groupOf(url))) return [];
    const text = event.body ?? textOf(results.get(event.id ?? ""));
    const list = apiDescriptionStart.test(text) ? (serverList.exec(text)?.[0] ?? "") : "";
    return [...list.matchAll(serverUrl)]
      .flatMap(([, server]) => URL.parse(server!) ?? [])
      .filter(({ hostname }) => isPublicName(hostname) && !url.search.includes(hostname))
      .map(({ host }) => host);
  });
  return new Set(hosts);
}

const isPublicName = (hostname: string) =>
  /\.[a-z][a-z-]+$/i.test(hostname) && !/\.(?:localhost|local|internal)$/i.test(hostname);

/** The text that a tool returned for a URL that it requested itself. */
function textOf(result: EventOf<"tool_result"> | undefined): string {
  const { text, body } = result?.output ?? {};
  const isOfRequest = result?.tool === "fetch_page" || result?.tool === "http_request";
  return isOfRequest ? String(body ?? text ?? "") : "";
}

function createGrouping(starts: string[], product: string | null, servers: Set<string>): (url: URL) => UrlGroup {
  const groupByUrl = createUrlClassifier(starts, product);
  return (url) => {
    const group = groupByUrl(url);
    return group === "other" && servers.has(url.host) ? "product" : group;
  };
}

/**
 * URLs on docs hosts are pages, whatever tool requests them. If docs and product share a host, URLs below the product URL belong to the product. If
 * the product URL can't distinguish them, writes belong to the product, and so do URLs below the URL of a write. `servers` are further hosts of the
 * product.
 */
function hostsOf(starts: string[], product: string | null, taskRequests: Http[], servers: Set<string>): Hosts {
  const groupOf = createGrouping(starts, product, servers);
  const writes = taskRequests
    .filter((http) => isWrite(http) && isSuccess(http))
    .flatMap((http) => {
      const url = URL.parse(http.url);
      return url === null ? [] : [{ http, url }];
    });
  const docsPaths = starts.flatMap((start) => URL.parse(start)?.pathname ?? []);
  // Whether a response can't be a page or file of the docs. The server of the docs may answer a write with a page. In a browser, products send HTML
  // too.
  const isEndpoint = (http: Http, { pathname }: URL) =>
    (http.purpose === "page" || !isHtml(http)) && !isFile(pathname) && folderOf(pathname) !== "/";
  const holdsDocs = ({ pathname }: URL) => docsPaths.some((path) => path.startsWith(folderOf(pathname)));
  // Writes that nothing but an endpoint of the product can have accepted.
  const endpointWrites = writes.filter(({ http, url }) => isEndpoint(http, url) && !holdsDocs(url));

  return {
    isOnDocsHost(address) {
      const url = URL.parse(address);
      return url !== null && isDocs(groupOf(url));
    },
    isProduct(request) {
      const url = URL.parse(request.url);
      if (url === null) return false;
      const group = groupOf(url);
      if (group !== "shared") return group === "product";
      return isWrite(request) || writes.some((write) => isAtOrBelow(url, write.url));
    },
    isKnownProduct(response) {
      const url = URL.parse(response.url);
      if (url === null) return false;
      const group = groupOf(url);
      if (group !== "shared") {
        // Without a known product, the group of the product has every host besides those of the docs.
        const isDeclared = product !== null || servers.has(url.host) || response.mappedUrl !== null;
        return group === "product" && isDeclared;
      }
      if (!isEndpoint(response, url)) return false;
      return isWrite(response) || endpointWrites.some((write) => isAtOrBelow(url, write.url));
    },
  };
}
