import type { EventOf } from "./events.ts";

type Request = Pick<EventOf<"http">, "method" | "url" | "status" | "seq">;

/** Whether a request is to the product, or reads its docs. */
export type Hosts = { isProduct(request: Pick<Request, "method" | "url">): boolean };

/** Without the last name of a path: "/docs/" of "/docs/index.html". */
const folderOf = ({ pathname }: URL) => pathname.replace(/[^/]*$/, "");

/**
 * The hosts of the docs are pages, whatever tool fetched them. Where docs and product share one, the product is what lies below its own
 * address; where that tells nothing, what is written to (any method but GET, HEAD and OPTIONS) and what lies below.
 */
export function hostsOf({ starts, product }: { starts: string[]; product: string | null }, way: Request[]): Hosts {
  const docs = starts.flatMap((start) => URL.parse(start) ?? []);
  const own = product === null ? null : URL.parse(product);
  const isDocsHost = (url: URL) =>
    docs.some((start) => url.host === start.host || url.hostname.endsWith(`.${start.hostname}`));
  const reads = (method: string) => /^(GET|HEAD|OPTIONS|CONNECT)$/i.test(method);
  const isWrite = ({ method }: { method: string }) => !reads(method);
  const written = way
    .filter((http) => isWrite(http) && http.status !== null && http.status >= 200 && http.status < 300)
    .flatMap(({ url }) => URL.parse(url) ?? []);
  return {
    isProduct(request) {
      const url = URL.parse(request.url);
      if (url === null) return false;
      if (own && url.host === own.host) {
        if (!isDocsHost(url)) return true;
        const below = folderOf(own);
        const isApart = docs.every((start) => start.host !== own.host || !start.pathname.startsWith(below));
        if (isApart) return url.pathname.startsWith(below);
      } else if (own) return url.hostname.endsWith(`.${own.hostname}`) && !isDocsHost(url);
      if (!isDocsHost(url)) return true;
      return (
        isWrite(request) ||
        written.some(({ host, pathname }) => {
          return host === url.host && `${url.pathname}/`.startsWith(`${pathname.replace(/\/$/, "")}/`);
        })
      );
    },
  };
}
