import { existsSync, statSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { extname, join } from "node:path";
import { loadTar } from "../../lazy-packages.ts";
import { decodePercent } from "../../net/percent.ts";
import type { MilestoneDetail } from "../milestones.ts";
import { createTemporaryFolder } from "../sockets.ts";
import type { TaskSite } from "../task.ts";
import { findHost, findPath, rulesOf, type SiteHost } from "./host-rules.ts";
import { type RedirectRule, readRedirects, targetOf } from "./redirects.ts";

/** The answer of the site to a request: a file of the folder, a redirect, or a text. */
type SiteAnswer = { status: number; file?: string; location?: string; text?: string };

const contentTypes: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".htm": "text/html; charset=utf-8",
  ".md": "text/markdown; charset=utf-8",
  ".mdx": "text/markdown; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".json": "application/json",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".ico": "image/x-icon",
  ".pdf": "application/pdf",
};

/** A built docs site in a folder, with the rules of its host. */
export type Site = {
  folder: string;
  host: SiteHost;
  /** The path of the URL that it is published at, without a slash at the end. */
  base: string;
  hostRules: ReturnType<typeof rulesOf>;
  redirects: RedirectRule[];
  /** Rules that only the host can apply. */
  notApplied: string[];
};

/** Reads a site and how its host would answer for it. `at`: the URL that it is published at. */
export async function readSite(folder: string, { at, host }: Omit<TaskSite, "archiveId" | "hostname">): Promise<Site> {
  const isFile = (path: string) => existsSync(join(folder, path));
  const rulesHost = host ?? findHost(isFile).host;
  const { rules, notApplied, hasCleanUrls } = await readRedirects(folder, rulesHost);
  const base = new URL(at).pathname.replace(/\/+$/, "");
  return { folder, host: rulesHost, base, hostRules: rulesOf(rulesHost, hasCleanUrls), redirects: rules, notApplied };
}

/** Answers the path of a URL, still encoded. */
export function answerPath(site: Site, encodedPath: string): SiteAnswer {
  const { base, redirects } = site;
  if (base !== "" && encodedPath === base) return { status: 301, location: `${base}/` };
  if (!encodedPath.startsWith(`${base}/`)) return { status: 404, text: "Not found" };
  const path = decodePercent(encodedPath.slice(base.length));
  if (path === null) return { status: 400, text: "Bad request" };
  if (isHidden(path)) return answerMissing(site);
  const file = findFile(site, path);
  for (const rule of redirects) {
    if (file !== null && !rule.isForced) continue;
    const target = targetOf(rule, path);
    if (target !== null) return followRule(site, rule, target);
  }
  return file ?? answerMissing(site);
}

/** Whether a path leads to a file. A path below a file, or one that is too long, leads to none. */
function hasFile({ folder }: Site, path: string): boolean {
  try {
    return statSync(join(folder, path)).isFile();
  } catch {
    return false;
  }
}

function findFile(site: Site, path: string): SiteAnswer | null {
  const result = findPath(path, (each) => hasFile(site, each), site.hostRules);
  if (result === null) return null;
  if ("file" in result) return { status: 200, file: join(site.folder, result.file) };
  return { status: site.hostRules.status, location: site.base + encodeURI(result.redirect) };
}

function answerMissing(site: Site): SiteAnswer {
  if (hasFile(site, "/404.html")) return { status: 404, file: join(site.folder, "404.html") };
  if (site.hostRules.fallsBackToStart && hasFile(site, "/index.html"))
    return { status: 200, file: join(site.folder, "index.html") };
  return { status: 404, text: "Not found" };
}

function followRule(site: Site, { status }: RedirectRule, target: string): SiteAnswer {
  if (status === 404) return answerMissing(site);
  if (status === 200) return findFile(site, target.replace(/[?#].*$/, "")) ?? answerMissing(site);
  return { status, location: /^https?:/i.test(target) ? target : site.base + target };
}

/** Paths that no host serves: out of the folder, and hidden files. */
const isHidden = (path: string): boolean =>
  path.includes("\0") || path.includes("\\") || path.split("/").includes("..") || /\/\.(?!well-known(\/|$))/.test(path);

/** A site that answers within a run. */
export type OpenSite = {
  /** The host name that the urlMap of the run names, and the socket that answers for it. */
  hostname: string;
  socketPath: string;
  served: MilestoneDetail<"site_served">;
  close(): Promise<void>;
};

/** Maximum number of rules to list that only the host can apply. */
const maxNotApplied = 20;

/** Unpacks a site and serves it on a unix socket, for one run. No port is opened. */
export async function openSite(data: Uint8Array, site: TaskSite): Promise<OpenSite> {
  const { folder, socketPath } = createTemporaryFolder("site");
  try {
    const files = join(folder, "files");
    const { total, hasHtml } = await unpack(data, files);
    const unpacked = await readSite(files, site);
    const server = Bun.serve({
      unix: socketPath,
      fetch: ({ method, url }) => toResponse(method, answerPath(unpacked, new URL(url).pathname)),
    });
    return {
      hostname: site.hostname,
      socketPath,
      served: {
        at: site.at,
        digest: new Bun.CryptoHasher("sha256").update(data).digest("hex"),
        files: total,
        host: unpacked.host,
        form: hasHtml ? "html" : "markdown",
        notApplied: unpacked.notApplied.slice(0, maxNotApplied),
        notAppliedTotal: unpacked.notApplied.length,
      },
      async close() {
        await server.stop(true);
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Unpacks regular files only, because a link could redirect a later file to another place. Returns their number, and whether one of them is a built
 * page.
 */
async function unpack(data: Uint8Array, folder: string): Promise<{ total: number; hasHtml: boolean }> {
  await mkdir(folder, { recursive: true });
  const contents = { total: 0, hasHtml: false };
  const extract = loadTar().extract({
    cwd: folder,
    strict: true,
    preserveOwner: false,
    filter(path, entry) {
      if (!("type" in entry)) return false;
      if (entry.type === "Directory") return true;
      if (!["File", "OldFile", "ContiguousFile"].includes(entry.type)) return false;
      contents.total++;
      contents.hasHtml ||= /\.html?$/i.test(path);
      return true;
    },
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  extract.on("close", resolve);
  extract.on("error", reject);
  extract.end(Buffer.from(data));
  await promise;
  return contents;
}

function toResponse(method: string, { status, file, location, text = "" }: SiteAnswer): Response {
  if (method !== "GET" && method !== "HEAD") return new Response("Method not allowed", { status: 405 });
  if (location !== undefined) return new Response(null, { status, headers: { location } });
  if (file === undefined) return new Response(text, { status, headers: { "content-type": "text/plain" } });
  const contentType = contentTypes[extname(file).toLowerCase()] ?? "application/octet-stream";
  return new Response(Bun.file(file), { status, headers: { "content-type": contentType } });
}
