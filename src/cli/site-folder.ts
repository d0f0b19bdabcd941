import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import { type Command, Option } from "commander";
import { type SiteHost, siteHosts } from "../agents/site/host-rules.ts";
import { readSite } from "../agents/site/site.ts";
import { maxSiteBytes } from "../archives/archive-check.ts";
import { AppError, badRequest } from "../errors.ts";
import { count, list } from "../grading/text.ts";
import { loadTar } from "../lazy-packages.ts";
import type { RequestedSites } from "../runs/sites.ts";
import { httpUrl } from "../schema.ts";
import type { Api } from "./api.ts";
import { say } from "./terminal.ts";

/** Files whose content agents read. Of others, such as images, only the names are packed: links to them work. */
const textExtensions = new Set(".html .htm .md .mdx .txt .xml .json .yaml .yml .toml .js .mjs .css .svg".split(" "));
/** Files without an extension that have rules for the host. */
const ruleFiles = new Set(["_redirects", "_headers", "CNAME", ".nojekyll"]);
const maxFiles = 20_000;
/** Scripts that only draw a page are of no use to agents, and bundles are large. */
const maxScriptBytes = 64 * 1024;
const loopback = /^(localhost|.*\.localhost|127\..*|\[::1\]|0\.0\.0\.0)$/i;

/** A folder with a built docs site, ready to be sent. */
export type PackedSite = {
  data: Uint8Array;
  files: number;
  /** The URL that it is published at, and what says so. */
  at: string;
  foundBy: "option" | "canonical" | "sitemap" | "CNAME";
  host: SiteHost;
  /** The file that names the host; null: none does. */
  hostFile: string | null;
  hasHtml: boolean;
};

/**
 * Packs the files of a folder. The same files make the same archive. `at`: in place of the URL that the folder names; `host`: in place of the one
 * that its files name. Throws bad_request that says what the folder lacks and how to go on, and too_large.
 */
export async function packSite(folder: string, { at, host }: SiteOptions): Promise<PackedSite> {
  const root = realpathSync(folder);
  const paths = listFiles(root);
  const pages = paths.filter((path) => /\.(html?|mdx?)$/i.test(path));
  if (pages.length === 0)
    throw badRequest(`No HTML or Markdown file is in ${folder}. Pass the folder that the build of your docs writes.`);
  const htmlPages = pages.filter((path) => /\.html?$/i.test(path));
  checkText(folder, root, htmlPages);
  const published = at === undefined ? findPublishedUrl(folder, root) : { at: readAt(at), foundBy: "option" as const };
  const hostFile = host === undefined ? findHostFile(paths) : null;
  const data = gzipSync(await toTar(root, paths), { level: 9 });
  if (data.length > maxSiteBytes)
    throw new AppError(
      "too_large",
      `The text of ${folder} is larger than ${maxSiteBytes / 1024 ** 2} MiB when packed.`,
    );
  return {
    data,
    files: paths.length,
    ...published,
    host: host ?? (hostFile === null ? "plain" : hostFiles[hostFile]!),
    hostFile,
    hasHtml: htmlPages.length > 0,
  };
}

/** The files that say which host serves a folder, most specific first. */
const hostFiles: Record<string, SiteHost> = {
  "vercel.json": "vercel",
  "netlify.toml": "netlify",
  _redirects: "netlify",
  ".nojekyll": "github",
  CNAME: "github",
};

const findHostFile = (paths: string[]): string | null =>
  Object.keys(hostFiles).find((name) => paths.includes(name)) ?? null;

/** The paths of all regular files, relative to the folder, sorted. Hidden files are left out, and links that lead out of the folder. */
function listFiles(root: string): string[] {
  const paths: string[] = [];
  const visit = (folder: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.name.startsWith(".") && entry.name !== ".well-known" && !ruleFiles.has(entry.name)) continue;
      if (entry.name === "node_modules") continue;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile() || (entry.isSymbolicLink() && leadsInside(root, path))) paths.push(relative(root, path));
      if (paths.length > maxFiles)
        throw new AppError(
          "too_large",
          `${root} has more than ${maxFiles} files. Pass the folder of the built docs only.`,
        );
    }
  };
  visit(root);
  return paths.map((path) => path.split(sep).join("/")).sort();
}

function leadsInside(root: string, path: string): boolean {
  try {
    const target = realpathSync(path);
    return target.startsWith(root + sep) && lstatSync(target).isFile();
  } catch {
    return false;
  }
}

const pagesToCheck = 20;
const minTextChars = 40;

/** Throws bad_request if the pages are only drawn by scripts. */
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

function readAt(at: string): string {
  const url = httpUrl(at);
  if (url === null || url.search || url.hash || url.username || url.password)
    throw badRequest(
      `Invalid value for --at: ${JSON.stringify(at)} must be an absolute http or https URL, such as https://docs.acme.example/latest/.`,
    );
  if (loopback.test(url.hostname))
    throw badRequest(
      `Invalid value for --at: ${url.host} is this machine. Pass the URL that the docs are published at.`,
    );
  return url.href.replace(/\/?$/, "/");
}

/** The URL that the folder itself names, if all that it says about it agrees. Throws bad_request that asks for --at. */
function findPublishedUrl(folder: string, root: string): Pick<PackedSite, "at" | "foundBy"> {
  const read = (name: string) => {
    try {
      return readFileSync(join(root, name), "utf8");
    } catch {
      return "";
    }
  };
  const canonical = /<link\b(?=[^>]*\brel=["']?canonical\b)[^>]*\bhref=["']?([^"'\s>]+)/i.exec(read("index.html"))?.[1];
  const [sitemap] = [...read("sitemap.xml").matchAll(/<loc>\s*([^<\s]+)/g)]
    .map(([, url = ""]) => url)
    .sort((a, b) => a.length - b.length);
  const name = read("CNAME").trim();
  const named = [
    { foundBy: "canonical" as const, url: canonical },
    { foundBy: "sitemap" as const, url: sitemap },
    { foundBy: "CNAME" as const, url: name && `https://${name}/` },
  ].flatMap(({ foundBy, url }) => {
    const parsed = url ? httpUrl(url) : null;
    return parsed && !loopback.test(parsed.hostname) ? [{ foundBy, url: parsed }] : [];
  });
  const [first] = named;
  const hosts = [...new Set(named.map(({ url }) => url.host))];
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

/** A tar file with fixed times and owners. */
async function toTar(root: string, paths: string[]): Promise<Uint8Array> {
  const { Header } = loadTar();
  const parts: Buffer[] = [];
  for (const path of paths) {
    const content = contentOf(root, path);
    const header = new Header({
      path,
      size: content.length,
      mode: 0o644,
      mtime: new Date(0),
      type: "File",
      uid: 0,
      gid: 0,
    });
    const block = Buffer.alloc(512);
    if (header.encode(block)) {
      // The path does not fit: an extended header names it.
      const { Pax } = loadTar();
      parts.push(new Pax({ path, mtime: new Date(0) }, false).encode());
    }
    parts.push(block, content, Buffer.alloc((512 - (content.length % 512)) % 512));
  }
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

function contentOf(root: string, path: string): Buffer {
  const isText = textExtensions.has(extname(path).toLowerCase()) || ruleFiles.has(path);
  if (!isText) return Buffer.alloc(0);
  const content = readFileSync(join(root, path));
  return /\.m?js$/i.test(path) && content.length > maxScriptBytes ? Buffer.alloc(0) : content;
}

const siteSources = {
  option: "--at",
  canonical: "canonical link of index.html",
  sitemap: "sitemap.xml",
  CNAME: "CNAME",
} satisfies Record<PackedSite["foundBy"], string>;

/** What is served, as which URL and by which rules. */
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

/** Uploads the docs in a folder. Returns what a run needs to read them in place of the live docs. */
export async function uploadSite(api: Api, folder: string, options: SiteOptions): Promise<RequestedSites> {
  const site = await packSite(folder, options);
  say(await describeSite(folder, site));
  const { id } = await api.request("POST /archives", {
    query: { kind: "site" },
    body: new Blob([site.data as Uint8Array<ArrayBuffer>], { type: "application/gzip" }),
  });
  return { [site.at]: { archiveId: id, host: site.host } };
}

/** Where the docs in a folder are published, and by which rules, in place of what its files name. */
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
