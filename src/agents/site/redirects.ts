import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadRedirectParser } from "../../lazy-packages.ts";
import type { SiteHost } from "./host-rules.ts";

/** A redirect or rewrite of a site. */
export type RedirectRule = {
  pattern: RegExp;
  to: string;
  /** 200: another file is served at the same URL. */
  status: number;
  /** Whether it applies even if a file has this path. Vercel looks for a file after its redirects and before its rewrites. */
  isForced: boolean;
};

/** The rules of a site in order. `notApplied`: rules that only its host can apply. `hasCleanUrls`: the URLs of its pages have no `.html`. */
export type Redirects = { rules: RedirectRule[]; notApplied: string[]; hasCleanUrls: boolean };

type ParsedRule = {
  from: string;
  to: string;
  status: number;
  isForced: boolean;
  /** Whether it depends on more than the path, such as the country of the visitor. */
  isConditional: boolean;
};

/** Reads the redirect rules that a host would find in a folder. Rules that can't be applied are listed, and never guessed. */
export async function readRedirects(folder: string, host: SiteHost): Promise<Redirects> {
  const redirects: Redirects = { rules: [], notApplied: [], hasCleanUrls: false };
  const add = (file: string, parsed: ParsedRule) => {
    const pattern = parsed.isConditional ? null : toPattern(parsed.from);
    const isProxy = parsed.status === 200 && /^https?:/i.test(parsed.to);
    if (pattern === null || isProxy) redirects.notApplied.push(`${file}: ${parsed.from} to ${parsed.to}`);
    else redirects.rules.push({ ...parsed, pattern });
  };
  if (host === "vercel") readVercel(folder, redirects, add);
  else if (host === "netlify" || host === "cloudflare") await readNetlify(folder, host, redirects, add);
  if (existsSync(join(folder, "_headers"))) redirects.notApplied.push("_headers");
  return redirects;
}

/** A rule as the parser returns it. */
type NetlifyRule = {
  path: string;
  host?: string;
  query?: object;
  to: string;
  status?: number;
  force?: boolean;
  conditions?: object;
};

type AddRule = (file: string, parsed: ParsedRule) => void;

async function readNetlify(folder: string, host: SiteHost, { notApplied }: Redirects, add: AddRule): Promise<void> {
  const files = host === "netlify" ? ["_redirects", "netlify.toml"] : ["_redirects"];
  for (const file of files.filter((each) => existsSync(join(folder, each)))) {
    const path = join(folder, file);
    const { redirects, errors } = await loadRedirectParser().parseAllRedirects({
      ...(file === "_redirects" ? { redirectsFiles: [path] } : { redirectsFiles: [], netlifyConfigPath: path }),
      configRedirects: [],
      minimal: false,
    });
    for (const rule of redirects as NetlifyRule[]) {
      const hasConditions = Object.keys({ ...rule.query, ...rule.conditions }).length > 0;
      add(file, {
        from: rule.path,
        to: rule.to,
        status: rule.status ?? 301,
        isForced: rule.force ?? false,
        isConditional: rule.host !== undefined || hasConditions,
      });
    }
    for (const { message } of errors as Error[]) notApplied.push(`${file}: ${message.split("\n")[0]}`);
  }
}

type VercelRule = {
  source: string;
  destination: string;
  permanent?: boolean;
  statusCode?: number;
  has?: unknown;
  missing?: unknown;
};
type VercelConfig = {
  cleanUrls?: boolean;
  redirects?: VercelRule[];
  rewrites?: VercelRule[];
} & Record<string, unknown>;

function readVercel(folder: string, redirects: Redirects, add: AddRule): void {
  const file = "vercel.json";
  if (!existsSync(join(folder, file))) return;
  let config: VercelConfig;
  try {
    config = JSON.parse(readFileSync(join(folder, file), "utf8"));
  } catch {
    redirects.notApplied.push(`${file}: is not valid JSON`);
    return;
  }
  redirects.hasCleanUrls = config.cleanUrls === true;
  const addAll = (rules: VercelRule[] = [], statusOf: (rule: VercelRule) => number) => {
    for (const rule of rules) {
      const status = statusOf(rule);
      add(file, {
        from: rule.source,
        to: rule.destination,
        status,
        isForced: status !== 200,
        // The sources of its rules can contain regular expressions in parentheses.
        isConditional: rule.has !== undefined || rule.missing !== undefined || /[()]/.test(rule.source),
      });
    }
  };
  addAll(config.redirects, ({ statusCode, permanent }) => statusCode ?? (permanent === false ? 307 : 308));
  addAll(config.rewrites, () => 200);
  for (const name of ["headers", "routes", "trailingSlash"])
    if (config[name] !== undefined) redirects.notApplied.push(`${file}: ${name}`);
}

/** A path with placeholders, such as `/old/:name` and `/old/*`; null if it can't be read. */
function toPattern(from: string): RegExp | null {
  if (from === "/") return /^\/$/;
  const segments = from.replace(/^\/|\/$/g, "").split("/");
  const parts = segments.map((segment, i) => toSegmentPattern(segment, i === segments.length - 1));
  if (parts.includes(null)) return null;
  try {
    return new RegExp(`^${parts.join("")}/?$`);
  } catch {
    return null;
  }
}

/**
 * The pattern of a segment, such as `old`, `:name`, `*` and `:name*`; null if it can't be read. A segment that ends with * matches everything that
 * follows.
 */
function toSegmentPattern(segment: string, isLast: boolean): string | null {
  const name = /^:(\w+)\*?$/.exec(segment)?.[1];
  if (segment === "*" || (name !== undefined && segment.endsWith("*")))
    return isLast ? `(?:/(?<${name ?? "splat"}>.*))?` : null;
  if (name !== undefined) return `/(?<${name}>[^/]+)`;
  return segment.includes("*") || segment === "" ? null : `/${RegExp.escape(segment)}`;
}

/** The target of a rule for a path; null if the rule is for other paths. */
export function targetOf({ pattern, to }: RedirectRule, path: string): string | null {
  const match = pattern.exec(path);
  if (!match) return null;
  return to.replace(/:(\w+)\*?/g, (text, name: string) => match.groups?.[name] ?? (name === "splat" ? "" : text));
}
