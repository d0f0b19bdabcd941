import { createUrlClassifier } from "../agents/docs-urls.ts";
import type { Http } from "./events.ts";

/** Whether a request is to the product, or reads its docs. */
export type Hosts = { isProduct(request: { method: string; url: string }): boolean };

/**
 * URLs on docs hosts are pages, with any tool. If docs and product share a host, URLs below the product
 * URL belong to the product. If the product URL can't distinguish them, writes (any method except GET, HEAD and
 * OPTIONS) and URLs below them do.
 */
export function hostsOf(starts: string[], product: string | null, taskRequests: Http[]): Hosts {
  const groupOf = createUrlClassifier(starts, product);
  const isWrite = ({ method }: { method: string }) => !/^(GET|HEAD|OPTIONS|CONNECT)$/i.test(method);
  const writtenUrls = taskRequests
    .filter((http) => isWrite(http) && http.status !== null && http.status >= 200 && http.status < 300)
    .flatMap(({ url }) => URL.parse(url) ?? []);
  return {
    isProduct(request) {
      const url = URL.parse(request.url);
      if (url === null) return false;
      const group = groupOf(url);
      if (group !== "shared") return group === "product";
      return (
        isWrite(request) ||
        writtenUrls.some(({ host, pathname }) => {
          return host === url.host && `${url.pathname}/`.startsWith(`${pathname.replace(/\/$/, "")}/`);
        })
      );
    },
  };
}
