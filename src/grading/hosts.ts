import { createUrlClassifier } from "../agents/docs-urls.ts";
import type { Http } from "./events.ts";

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

/**
 * URLs on docs hosts are pages, whatever tool requests them. If docs and product share a host, URLs below the product
 * URL belong to the product. If the product URL can't distinguish them, these do: writes (any method except GET, HEAD and
 * OPTIONS), and URLs below the URL of a write.
 */
export function hostsOf(starts: string[], product: string | null, taskRequests: Http[]): Hosts {
  const groupOf = createUrlClassifier(starts, product);
  const writes = taskRequests
    .filter((http) => isWrite(http) && isSuccess(http))
    .flatMap((http) => {
      const url = URL.parse(http.url);
      return url === null ? [] : [{ http, url }];
    });
  const docsPaths = starts.flatMap((start) => URL.parse(start)?.pathname ?? []);
  /** Whether a response can't be a page or file of the docs, which their server may also send in answer to a write. A browser gets HTML from products too. */
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
      if (group !== "shared") return group === "product" && (product !== null || response.mappedUrl !== null);
      if (!isEndpoint(response, url)) return false;
      return isWrite(response) || endpointWrites.some((write) => isAtOrBelow(url, write.url));
    },
  };
}
