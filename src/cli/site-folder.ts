import { readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { listSiteFiles, packSiteFiles } from "../action/site.mjs";
import { findHost, type SiteHost, siteHosts } from "../agents/site/host-rules.ts";
import { readSite } from "../agents/site/site.ts";
import { parseSiteUrl } from "../agents/site/site-name.ts";
import { maxSiteBytes } from "../archives/archive-check.ts";
import { AppError, badRequest } from "../errors.ts";
import { count, list } from "../grading/text.ts";
import type { RequestedSites } from "../runs/sites.ts";
import { httpUrl } from "../schema.ts";
import type { Api } from "./api.ts";
import { say } from "./terminal.ts";

const loopback = /^(localhost|.*\.localhost|127\..*|\[::1\]|0\.0\.0\.0)$/i;

/** A folder with a built docs site, ready to be sent. */
export type PackedSite = {
  data: Uint8Array;
  /** Number of files. */
  files: number;
  /** The URL that the site is published at, and where that URL was found. */
  at: string;
  foundBy: "option" | "canonical" | "sitemap" | "CNAME";
  host: SiteHost;
  /** The file that names the host; null if no file does. */
  hostFile: string | null;
  hasHtml: boolean;
};

/**
 * Packs the files of a folder. The same files give the same archive. `at`: replaces the URL that the folder names. `host`: replaces the host that its
 * files name. Throws too_large, and bad_request that says what the folder lacks and how to continue.
 */
export async function packSite(folder: string, { at, host }: SiteOptions): Promise<PackedSite> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw badRequest(`There is no folder ${folder}. Pass the folder that the build of your docs writes.`);
  const root = realpathSync(folder);
  const paths = listSiteFiles(root);
  const pages = paths.filter((path) => /\.(html?|mdx?)$/i.test(path));
  if (pages.length === 0)
    throw badRequest(`No HTML or Markdown file is in ${folder}. Pass the folder that the build of your docs writes.`);
  const htmlPages = pages.filter((path) => /\.html?$/i.test(path));
  checkText(folder, root, htmlPages);
  const published =
    at === undefined ? findPublishedUrl(folder, root) : { at: parsePublishedUrl(at), foundBy: "option" as const };
  const hostChoice = host === undefined ? findHost((path) => paths.includes(path.slice(1))) : { host, file: null };
  const data = packSiteFiles(root, paths);
  if (data.length > maxSiteBytes)
    throw new AppError(
      "too_large",
      `The text of ${folder} is larger than ${maxSiteBytes / 1024 ** 2} MiB when packed.`,
    );
  return {
    data,
    files: paths.length,
    ...published,
    host: hostChoice.host,
    hostFile: hostChoice.file,
    hasHtml: htmlPages.length > 0,
  };
}

const pagesToCheck = 20;
const minTextChars = 40;

/** Throws bad_request if the pages have text only after scripts have run. */
function checkText(folder: string, root: string, htmlPages: string[]): void {
  const lengths = htmlPages.slice(0, pagesToCheck).map((path) => textOf(readFileSync(join(root, path), "utf8")).length);
  if (lengths.length === 0 || lengths.some((length) => length >= minTextChars)) return;
  throw badRequest(
    `The HTML files in ${folder} contain no text: their pages are drawn by scripts in a browser. Build the site with server-side rendering, or deploy a preview and pass its URL.`,
  );
}

const textOf = (html: string): string =>
  html
    .replace(/<(script|style|head|noscript|template)\b[\s\S]*?<\/\1>/gi, " ")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

/** The value of --at as a URL that ends with a slash. Throws bad_request. */
function parsePublishedUrl(at: string): string {
  const url = parseSiteUrl(at);
  if (url === null)
    throw badRequest(
      `Invalid value for --at: ${JSON.stringify(at)} must be an absolute http or https URL, such as https://docs.acme.example/latest/.`,
    );
  if (loopback.test(url.hostname))
    throw badRequest(
      `Invalid value for --at: ${url.host} is this machine. Pass the URL that the docs are published at.`,
    );
  return url.href.replace(/\/?$/, "/");
}

/** `<link rel="canonical" href="…">`, with its attributes in any order. */
const canonicalLink = /<link\b(?=[^>]*\brel=["']?canonical\b)[^>]*\bhref=["']?(?<url>[^"'\s>]+)/i;

/** The URL of the root page, which is the shortest URL in a sitemap. */
function findRootUrl(sitemap: string): string | undefined {
  const urls = [...sitemap.matchAll(/<loc>\s*([^<\s]+)/g)].map(([, url = ""]) => url);
  return urls.sort((a, b) => a.length - b.length)[0];
}

/**
 * The published URL that files of the folder name. Throws bad_request that asks for --at if no file names one, or if the files name several hosts.
 */
function findPublishedUrl(folder: string, root: string): Pick<PackedSite, "at" | "foundBy"> {
  const readIfPossible = (name: string) => {
    try {
      return readFileSync(join(root, name), "utf8");
    } catch {
      return "";
    }
  };
  const name = readIfPossible("CNAME").trim();
  const candidates = [
    { foundBy: "canonical" as const, url: canonicalLink.exec(readIfPossible("index.html"))?.groups?.url },
    { foundBy: "sitemap" as const, url: findRootUrl(readIfPossible("sitemap.xml")) },
    { foundBy: "CNAME" as const, url: name && `https://${name}/` },
  ].flatMap(({ foundBy, url }) => {
    const parsed = url ? httpUrl(url) : null;
    return parsed && !loopback.test(parsed.hostname) ? [{ foundBy, url: parsed }] : [];
  });
  const [first] = candidates;
  const hosts = [...new Set(candidates.map(({ url }) => url.host))];
  const example = `evald eval ${folder} --at https://docs.acme.example/`;
  if (!first)
    throw badRequest(`Nothing in ${folder} says where the docs are published. Pass --at with their URL: ${example}`);
  if (hosts.length > 1)
    throw badRequest(
      `The files in ${folder} name several hosts: ${hosts.join(", ")}. Pass --at with the URL of the docs: ${example}`,
    );
  const path = first.url.pathname.replace(/[^/]*$/, "");
  return { at: `${first.url.origin}${path}`, foundBy: first.foundBy };
}

const siteSources = {
  option: "--at",
  canonical: "canonical link of index.html",
  sitemap: "sitemap.xml",
  CNAME: "CNAME",
} satisfies Record<PackedSite["foundBy"], string>;

/** Describes in sentences what is served, at which URL, and by which rules. */
export async function describeSite(
  folder: string,
  { at, files, foundBy, host, hostFile, hasHtml }: PackedSite,
): Promise<string> {
  const { notApplied } = await readSite(folder, { at, host });
  const rules = hostFile === null ? host : `${host} (${hostFile})`;
  return [
    `Serving ${folder} (${count(files, "file")}) as ${at} (${siteSources[foundBy]}). Host rules: ${rules}.`,
    ...(hasHtml ? [] : ["The folder has no HTML, so its Markdown sources are read as they are."]),
    ...(notApplied.length > 0 ? [`Not applied: ${list(notApplied, 10)}.`] : []),
  ].join("\n");
}

/** Uploads the docs in a folder. Returns what a run needs to read these docs instead of the live ones. */
export async function uploadSite(api: Api, folder: string, options: SiteOptions): Promise<RequestedSites> {
  const site = await packSite(folder, options);
  say(await describeSite(folder, site));
  const { id } = await api.request("POST /archives", {
    query: { kind: "site" },
    body: new Blob([site.data as Uint8Array<ArrayBuffer>], { type: "application/gzip" }),
  });
  return { [site.at]: { archiveId: id, host: site.host } };
}

/** The URL where the docs in a folder are published, and the rules for serving them. Both replace what the files name. */
export type SiteOptions = { at?: string | undefined; host?: SiteHost | undefined };

/** Adds the options of `SiteOptions`. */
export const addSiteOptions = (command: Command): Command =>
  command
    .option("--at <url>", "URL that the docs in the folder are published at (default: the one that its files name)")
    .addOption(
      new Option("--host <name>", "Rules to serve the folder by (default: those that its files name)").choices(
        siteHosts,
      ),
    );
