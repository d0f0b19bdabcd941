import { pageKey } from "../../net/page-key.ts";
import { mayBePage, type ReadPage, type Session } from "./session.ts";

/** A folder is the whole docs if at least this share of the links of the start page lead into it. */
const minLinkShare = 0.75;
/** From this share on, a single page at the root of the host may be part of the product instead of the docs. */
const minShareBeside = 0.5;

/**
 * The folder of its host that contains the docs of a start page, as a URL that ends with a slash. It is the deepest folder that contains the page and
 * nearly all pages of this host that the page links to. Hosts such as github.io have a project in each folder, so pages beside a folder usually don't
 * belong to its docs. If the page has no such links, its docs are the whole host.
 */
export function findDocsFolder(page: ReadPage): string {
  const { origin, pathname } = new URL(page.url);
  const linked = linkedPagesOf(page);
  const names = pathname.split("/").filter(Boolean);
  const folders = names.map((_, index) => `${origin}/${names.slice(0, names.length - index).join("/")}/`);
  return (linked.length > 0 && folders.find((folder) => shareIn(folder, linked) >= minLinkShare)) || `${origin}/`;
}

/** The other pages of its host that a page links to. */
function linkedPagesOf({ url, addresses, links }: ReadPage): string[] {
  const origins = new Set([new URL(url).origin]);
  const ownKeys = new Set(addresses.map(pageKey));
  const linked = links.filter((link) => mayBePage(link.url, origins) && !ownKeys.has(pageKey(link.url)));
  return [...new Map(linked.map((link) => [pageKey(link.url), link.url])).values()];
}

const shareIn = (folder: string, urls: string[]): number =>
  urls.filter((url) => isInFolder(url, folder)).length / urls.length;

/** Whether most links of a start page lead into its folder, and a page stands alone beside it: `/app` beside `/docs/`. */
export function isBesideDocs({ pages, docsFolders }: Session, address: string): boolean {
  const { origin, pathname } = new URL(address);
  if (!docsFolders.has(origin) || !/^\/[^/]+\/?$/.test(pathname)) return false;
  const [start] = pages.filter(({ url, problem }) => problem === null && new URL(url).origin === origin);
  const [name] = start ? new URL(start.url).pathname.split("/").filter(Boolean) : [];
  if (!start || name === undefined) return false;
  const folder = `${origin}/${name}/`;
  const linked = linkedPagesOf(start);
  return !isInFolder(address, folder) && shareIn(folder, linked) >= minShareBeside;
}

/** Whether a page is part of the docs that the run is about. On a host without a start page, every page is. */
export function isInDocs({ docsFolders }: Session, address: string): boolean {
  const folders = docsFolders.get(new URL(address).origin);
  return folders === undefined || [...folders].some((folder) => isInFolder(address, folder));
}

const isInFolder = (address: string, folder: string): boolean =>
  `${address.replace(/[?#].*$/s, "")}/`.startsWith(folder);
