import { pageKey } from "../../net/page-key.ts";
import { mayBePage, type ReadPage, type Session } from "./session.ts";

/** A folder is the whole docs if at least this share of the links of the start page lead into it. */
const minLinkShare = 0.75;

/**
 * The folder of its host that the docs of a start page are in, as a URL that ends with a slash: the deepest one that contains the page and
 * nearly all pages of this host that it links to. Hosts such as github.io have a project in each folder, and what is beside a folder
 * usually isn't part of its docs. A page without such links tells nothing, so its docs are the whole host.
 */
export function findDocsFolder(page: ReadPage): string {
  const { origin, pathname } = new URL(page.url);
  const ownKeys = new Set(page.addresses.map(pageKey));
  const linked = new Map(
    page.links
      .filter(({ url }) => mayBePage(url, new Set([origin])) && !ownKeys.has(pageKey(url)))
      .map(({ url }) => [pageKey(url), url]),
  );
  const names = pathname.split("/").filter(Boolean);
  const folders = names.map((_, index) => `${origin}/${names.slice(0, names.length - index).join("/")}/`);
  const isWhole = (folder: string) =>
    [...linked.values()].filter((url) => isInFolder(url, folder)).length >= minLinkShare * linked.size;
  return (linked.size > 0 && folders.find(isWhole)) || `${origin}/`;
}

/** Whether a page is part of the docs that the run is about. On a host without a start page, every page is. */
export function isInDocs({ docsFolders }: Session, address: string): boolean {
  const folders = docsFolders.get(new URL(address).origin);
  return folders === undefined || [...folders].some((folder) => isInFolder(address, folder));
}

const isInFolder = (address: string, folder: string): boolean =>
  `${address.replace(/[?#].*$/s, "")}/`.startsWith(folder);
