import type { SessionEvent } from "../agents/agent.ts";
import { createUrlClassifier } from "../agents/docs-urls.ts";
import { type EventOf, type Http, milestonesOf } from "./events.ts";

type Request = { method: string; url: string };

export type Hosts = {
  /** Whether a request is to the product, as opposed to its docs. */
  isProduct(request: Request): boolean;
  /** Whether a response is known to come from the product: nothing else could have answered. */
  isKnownProduct(response: Http): boolean;
};

const isWrite = ({ method }: { method: string }) => !/^(GET|HEAD|OPTIONS|CONNECT)$/i.test(method);
const isSuccess = ({ status }: Http) => status !== null && status >= 200 && status < 300;
const isHtml = ({ contentType }: Http) => /html/i.test(contentType ?? "");
const folderOf = (path: string) => `${path.replace(/\/$/, "")}/`;
const isAtOrBelow = (url: URL, other: URL) =>
  url.host === other.host && folderOf(url.pathname).startsWith(folderOf(other.pathname));
const isFile = (path: string) => /\.\w{2,5}$/.test(path);

/** The hosts of a session, by what its task names, its requests, and the API descriptions that it read. */
export function hostsOfSession(session: SessionEvent[], taskRequests: Http[]): Hosts {
  const { starts = [], product = null } = milestonesOf(session, "started").at(-1)?.detail ?? {};
  return hostsOf(starts, product, taskRequests, describedServers(session, starts));
}

const apiDescriptionStart = /^[\s{]*["']?(?:openapi|swagger)["']?\s*:|["'](?:openapi|swagger)["']\s*:\s*["'][\d.]+["']/;
const serverList = /["']?servers["']?\s*:\s*(?:\[[^\]]*|\n(?:[ \t-].*(?:\n|$))+)/;
const serverUrl = /["']?url["']?\s*:\s*["']?(https?:\/\/[^\s"',}]+)/g;

/** The hosts of the servers in the API descriptions that the docs served, which may be cut. Hosts without a public name could be the agent's own. */
function describedServers(session: SessionEvent[], starts: string[]): Set<string> {
  const groupOf = createUrlClassifier(starts, null);
  const results = new Map(session.flatMap((e) => (e.type === "tool_result" ? [[e.id, e] as const] : [])));
  const texts = session.flatMap((event) => {
    if (event.type !== "http" || event.status !== 200) return [];
    const url = URL.parse(event.url);
    return url !== null && groupOf(url) === "shared" ? [event.body ?? textOf(results.get(event.id ?? ""))] : [];
  });
  const urls = texts.flatMap((text) =>
    apiDescriptionStart.test(text)
      ? [...(serverList.exec(text)?.[0] ?? "").matchAll(serverUrl)].map(([, url]) => url!)
      : [],
  );
  return new Set(
    urls.flatMap((url) => {
      const { hostname = "", host = "" } = URL.parse(url) ?? {};
      return /\.[a-z][a-z-]+$/i.test(hostname) && !/\.(?:localhost|local|internal)$/i.test(hostname) ? [host] : [];
    }),
  );
}

/** What a tool that requests a URL itself returned of it. */
function textOf(result: EventOf<"tool_result"> | undefined): string {
  const { text, body } = result?.output ?? {};
  const isOfRequest = result?.tool === "fetch_page" || result?.tool === "http_request";
  return isOfRequest ? String(body ?? text ?? "") : "";
}

/**
 * URLs on docs hosts are pages, whatever tool requests them. If docs and product share a host, URLs below the product
 * URL belong to the product. If the product URL can't distinguish them, these do: writes (any method except GET, HEAD and
 * OPTIONS), and URLs below the URL of a write.
 * `servers` are further hosts of the product.
 */
function hostsOf(starts: string[], product: string | null, taskRequests: Http[], servers: Set<string>): Hosts {
  const groupByUrl = createUrlClassifier(starts, product);
  const groupOf = (url: URL) => {
    const group = groupByUrl(url);
    return group === "other" && servers.has(url.host) ? "product" : group;
  };
  const writes = taskRequests
    .filter((http) => isWrite(http) && isSuccess(http))
    .flatMap((http) => {
      const url = URL.parse(http.url);
      return url === null ? [] : [{ http, url }];
    });
  const docsPaths = starts.flatMap((start) => URL.parse(start)?.pathname ?? []);
  /** Whether a response can't be a page or file of the docs: their server may answer a write with one. In a browser, products send HTML too. */
  const isEndpoint = (http: Http, { pathname }: URL) =>
    (http.purpose === "page" || !isHtml(http)) && !isFile(pathname) && folderOf(pathname) !== "/";
  const holdsDocs = ({ pathname }: URL) => docsPaths.some((path) => path.startsWith(folderOf(pathname)));
  /** Writes that nothing but an endpoint of the product can have accepted. */
  const endpointWrites = writes.filter(({ http, url }) => isEndpoint(http, url) && !holdsDocs(url));

  return {
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
        const isDeclared = product !== null || servers.has(url.host) || response.mappedUrl !== null;
        return group === "product" && isDeclared;
      }
      if (!isEndpoint(response, url)) return false;
      return isWrite(response) || endpointWrites.some((write) => isAtOrBelow(url, write.url));
    },
  };
}
