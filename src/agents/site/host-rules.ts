/** Hosts of static sites by whose rules a folder can be served. `plain` serves what any of them would find. */
export const siteHosts = ["plain", "github", "netlify", "vercel", "cloudflare"] as const;
export type SiteHost = (typeof siteHosts)[number];

/** The files that say which host serves a site, most specific first. */
const hostFiles: Record<string, SiteHost> = {
  "vercel.json": "vercel",
  "netlify.toml": "netlify",
  _redirects: "netlify",
  ".nojekyll": "github",
  CNAME: "github",
};

/** The host that the files of a site name, and the file that names it. `plain` if no file does. `isFile`: gets paths that begin with a slash. */
export function findHost(isFile: (path: string) => boolean): { host: SiteHost; file: string | null } {
  const file = Object.keys(hostFiles).find((name) => isFile(`/${name}`)) ?? null;
  return { host: file === null ? "plain" : hostFiles[file]!, file };
}

/** The answer of a host to a path: a file or a redirect; null if it finds nothing. */
type PathAnswer = { file: string } | { redirect: string } | null;

type HostRules = {
  /** Status of redirects between the forms of a path. */
  status: 301 | 308;
  /** `/page`, for the file `/page.html`. */
  page: "serve" | "missing";
  /** `/page/`, for the file `/page.html`. */
  pageWithSlash: "serve" | "redirect" | "missing";
  /** `/page.html` itself. */
  html: "serve" | "redirect";
  /** `/folder`, for the file `/folder/index.html`. */
  folder: "serve" | "redirect";
  /** `/folder/index.html` itself: served, or redirected with or without a slash at the end. */
  index: "serve" | "to_folder" | "to_folder_with_slash";
  /** Whether a page can be a Markdown file, as in the sources of docs. */
  markdown?: true;
  /** Whether a site without 404.html answers unknown paths with its start page. */
  fallsBackToStart?: true;
};

const serveAll = {
  status: 301,
  page: "serve",
  pageWithSlash: "redirect",
  html: "serve",
  folder: "redirect",
  index: "serve",
} satisfies HostRules;

/** How the hosts treat the forms of a path, as measured in November 2024 by https://github.com/slorber/trailing-slash-guide. */
const rules: Record<SiteHost, HostRules> = {
  plain: { ...serveAll, markdown: true },
  github: { ...serveAll, pageWithSlash: "missing" },
  netlify: serveAll,
  vercel: { ...serveAll, status: 308, page: "missing", pageWithSlash: "missing", folder: "serve" },
  cloudflare: { ...serveAll, status: 308, html: "redirect", index: "to_folder_with_slash", fallsBackToStart: true },
};

/** Vercel with `cleanUrls` in vercel.json. */
const vercelCleanUrls: HostRules = {
  status: 308,
  page: "serve",
  pageWithSlash: "serve",
  html: "redirect",
  folder: "serve",
  index: "to_folder",
};

/** The rules of a host. `hasCleanUrls`: whether vercel.json sets `cleanUrls`. */
export const rulesOf = (host: SiteHost, hasCleanUrls: boolean): HostRules =>
  host === "vercel" && hasCleanUrls ? vercelCleanUrls : rules[host];

const markdownNames = [".md", ".mdx", "/index.md", "/index.mdx", "/README.md"];

/** Finds the answer of a host to a decoded path, before any redirect rules. `isFile`: gets paths that begin with a slash. */
export function findPath(path: string, isFile: (path: string) => boolean, hostRules: HostRules): PathAnswer {
  const hasSlash = path.endsWith("/");
  const bare = path.replace(/\/+$/, "");
  const index = `${bare}/index.html`;
  const page = `${bare}.html`;
  if (!hasSlash && isFile(bare)) {
    if (hostRules.index !== "serve" && bare.endsWith("/index.html")) {
      const folder = bare.slice(0, -"index.html".length);
      return { redirect: hostRules.index === "to_folder" ? folder.slice(0, -1) || "/" : folder };
    }
    if (hostRules.html === "redirect" && bare.endsWith(".html")) return { redirect: bare.slice(0, -".html".length) };
    return { file: bare };
  }
  // Without a slash, a page comes before a folder of the same name.
  if (isFile(index) && (hasSlash || !isFile(page)))
    return hasSlash || hostRules.folder === "serve" ? { file: index } : { redirect: `${bare}/` };
  if (bare !== "" && isFile(page)) {
    const rule = hasSlash ? hostRules.pageWithSlash : hostRules.page;
    if (rule === "serve") return { file: page };
    if (rule === "redirect") return { redirect: bare };
  }
  if (!hostRules.markdown) return null;
  const markdown = markdownNames.map((name) => `${bare}${name}`).find(isFile);
  return markdown === undefined ? null : { file: markdown };
}
