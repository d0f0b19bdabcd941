import { and, count, desc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { bisects } from "../db/tables/bisects.ts";
import { notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toIso } from "../schema.ts";
import { changedOf, posteriorOf } from "../stats/bisection.ts";
import { round } from "../stats/repeats.ts";
import type { Bisect } from "./schema.ts";
import { type BisectRow, type BuildRun, costOf, designOf, listEndedRuns, progressOf, scoresOf } from "./scores.ts";

/** Throws not_found. */
export function getBisectRow({ db }: Context, org: OrgId, id: string): BisectRow {
  const whereBisect = and(eq(bisects.orgId, org), eq(bisects.id, id.toLowerCase()));
  const row = db.select().from(bisects).where(whereBisect).get();
  if (!row) throw notFound(`No bisect has the ID ${id}.`);
  return row;
}

/** A bisect with what its ended runs show. Throws not_found. */
export const getBisect = (ctx: Context, org: OrgId, id: string): Bisect => toBisect(ctx, getBisectRow(ctx, org, id));

/** Newest first. */
export function listBisects(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<Bisect> {
  const where = eq(bisects.orgId, org);
  const rows = ctx.db.select().from(bisects).where(where).orderBy(desc(bisects.id)).limit(limit).offset(offset).all();
  return {
    items: rows.map((row) => toBisect(ctx, row)),
    total: ctx.db.select({ n: count() }).from(bisects).where(where).get()?.n ?? 0,
  };
}

function toBisect(ctx: Context, row: BisectRow): Bisect {
  const { id, promptId, urlTemplate, commits, status, stopReason, result, budgetUsd, spentUsd } = row;
  const ended = listEndedRuns(ctx, row);
  const posterior = posteriorOf(designOf(row, ended), scoresOf(ended));
  return {
    promptId,
    commits,
    budgetUsd,
    id,
    status,
    stopReason,
    // Previews take bypass tokens in the query of their URL.
    urlTemplate: urlTemplate.replace(/\?[^#]*/, "?redacted"),
    pageUrl: `${ctx.baseUrl()}/bisects/${id}`,
    builds: toBuilds(row, ended, posterior),
    posterior: posterior.map((probability) => round(probability, 4)),
    result: result && {
      commits: result.builds.map((build) => commits[build] ?? ""),
      probability: round(result.probability, 4),
    },
    progress: progressOf(ctx, row),
    spentUsd: spentUsd ?? costOf(ctx, row),
    createdAt: toIso(row.createdAt),
    completedAt: toIso(row.completedAt),
  };
}

/** The builds that were tried, in the order of their first runs. Builds that were skipped without a run come last. */
function toBuilds({ commits, skipped }: BisectRow, ended: BuildRun[], posterior: number[]): Bisect["builds"] {
  const runsByBuild = Map.groupBy(ended, ({ build }) => build);
  const numbers = new Set([...runsByBuild.keys(), ...skipped.map(({ build }) => build)]);
  const changed = changedOf(posterior);
  return [...numbers].map((build) => {
    const runs = runsByBuild.get(build) ?? [];
    const reason = skipped.find((each) => each.build === build)?.reason ?? null;
    return {
      commit: commits[build] ?? "",
      scores: runs.flatMap(({ score }) => score ?? []),
      changed: reason === null ? round(changed[build]!, 4) : null,
      skipped: reason,
      evalRequestId: runs[0]?.evalRequestId ?? null,
    };
  });
}
