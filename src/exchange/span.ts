import { and, eq, gte, lt, lte, type SQL } from "drizzle-orm";
import { runs } from "../db/tables.ts";
import type { OrgId } from "../deps.ts";

/** Runs that had ended when an export began, and what narrows them down. */
export type Span = { org: OrgId; promptId: string | null; from: string; to: string; endedBy: number };

/** Runs that are told of: what is not finished when the export begins is not, nor is what ends meanwhile. */
export const inSpan = ({ org, promptId, from, to, endedBy }: Span): SQL | undefined =>
  and(
    eq(runs.orgId, org),
    promptId === null ? undefined : eq(runs.promptId, promptId),
    gte(runs.id, from),
    lt(runs.id, to),
    // Null, of a run that has not ended, is not less.
    lte(runs.completedAt, endedBy),
  );
