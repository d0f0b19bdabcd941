/** `shared`: docs and product are on the same host, and the URL alone doesn't tell whether it belongs to the docs or the product. */
export type UrlGroup = "docs" | "product" | "shared" | "other";

/** The folder of a path: "/docs/" for "/docs/index.html". */
const folderOf = ({ pathname }: URL) => pathname.replace(/[^/]*$/, "");

/**
 * Tells which URLs belong to the docs and which to the product. If docs and product share a host, URLs below the product URL belong to the product.
 * If no product is known, every host that isn't a docs host belongs to the product.
 */
export function createUrlClassifier(starts: string[], product: string | null) {
  const docs = starts.flatMap((start) => URL.parse(start) ?? []);
  const productUrl = product === null ? null : URL.parse(product);
  const isDocsHost = (url: URL) =>
    docs.some((start) => url.host === start.host || url.hostname.endsWith(`.${start.hostname}`));

  return (url: URL): UrlGroup => {
    const isDocs = isDocsHost(url);
    if (!productUrl) return isDocs ? "shared" : "product";
    if (url.host !== productUrl.host) {
      if (isDocs) return "docs";
      return url.hostname.endsWith(`.${productUrl.hostname}`) ? "product" : "other";
    }
    if (!isDocs) return "product";
    const productFolder = folderOf(productUrl);
    const hasOwnFolder = docs.every(
      (start) => start.host !== productUrl.host || !start.pathname.startsWith(productFolder),
    );
    if (!hasOwnFolder) return "shared";
    return url.pathname.startsWith(productFolder) ? "product" : "docs";
  };
}
