import { and, eq, gte, lt, lte, type SQL } from "drizzle-orm";
import type { OrgId } from "../context.ts";
import { runs } from "../db/tables/runs.ts";

/** Selects the runs that ended before the export started, narrowed by its filters. */
export type Span = { org: OrgId; promptId: string | null; from: string; to: string; endedBy: number };

/** Whether a run is exported: it ended before the export started. */
export const inSpan = ({ org, promptId, from, to, endedBy }: Span): SQL | undefined =>
  and(
    eq(runs.orgId, org),
    promptId === null ? undefined : eq(runs.promptId, promptId),
    gte(runs.id, from),
    lt(runs.id, to),
    // completedAt is null for unfinished runs, so the comparison excludes them.
    lte(runs.completedAt, endedBy),
  );
