import type { SiteHost } from "../agents/site/host-rules.ts";
import { parseSiteUrl, toSiteHostname } from "../agents/site/site-name.ts";
import type { TaskSite } from "../agents/task.ts";
import { findArchiveDigest, noteSiteUse } from "../archives/archives.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { badRequest, invalidField } from "../errors.ts";

/** A built docs site in an uploaded archive, by the URL at which it is published. A run has at most one. */
export type RequestedSites = Record<string, { archiveId: string; host?: SiteHost }>;

/**
 * The site of a run, and the urlMap that directs requests for its host to it; null: there is no site. Builds with different content have different
 * names, as previews do. Throws bad_request for a URL or an archive that can't be used, and for a urlMap that replaces the same host.
 */
export function resolveSites(
  ctx: Context,
  tx: Tx,
  org: OrgId,
  sites: RequestedSites,
  urlMap: Record<string, string>,
): { site: TaskSite | null; urlMap: Record<string, string> } {
  const [entry, ...others] = Object.entries(sites);
  if (!entry) return { site: null, urlMap };
  if (others.length > 0) throw invalidField("sites", "must have one entry: a run reads one site");
  const [at, { archiveId, host = null }] = entry;
  const url = parseSiteUrl(at);
  if (url === null)
    throw invalidField(
      "sites",
      `the key ${JSON.stringify(at)} must be an absolute http or https URL without query and fragment`,
    );
  const digest = findArchiveDigest(ctx, org, archiveId);
  if (digest === null)
    throw invalidField("sites", `no archive has the ID ${archiveId}; upload it with POST /api/v1/archives?kind=site`);
  noteSiteUse(ctx, tx, org, archiveId);
  const hostname = toSiteHostname(digest);
  const target = `http://${hostname}/`;
  if (urlMap[url.host] !== undefined && urlMap[url.host] !== target)
    throw badRequest(`Invalid urlMap: ${url.host} is the host of the site. Remove one of them.`);
  return { site: { at: url.href, host, archiveId, hostname }, urlMap: { ...urlMap, [url.host]: target } };
}

/** The input that requests a run with the same site again. */
export const requestedSitesOf = ({ site }: { site?: TaskSite }): RequestedSites =>
  site ? { [site.at]: { archiveId: site.archiveId, ...(site.host && { host: site.host }) } } : {};
