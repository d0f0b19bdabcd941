import { and, asc, desc, eq, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { experimentRuns } from "../db/tables/experiments.ts";
import { frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { type ExperimentRow, ofExperiment } from "./results.ts";
import type { Experiment } from "./schema.ts";

/** Friction points of an experiment that are listed. */
const maxPoints = 50;

/**
 * How many runs of each arm met each friction point, the largest difference between two arms first. These are shares of runs, and not part of any
 * score.
 */
export function frictionOf({ db }: Context, row: ExperimentRow): Experiment["friction"] {
  const { orgId, arms } = row;
  const rows = db
    .select({
      fingerprint: frictionPoints.fingerprint,
      title: sql<string>`min(${frictionPoints.title})`,
      arm: experimentRuns.arm,
      runs: sql<number>`count(distinct ${experimentRuns.runId})`,
    })
    .from(experimentRuns)
    .innerJoin(reports, eq(reports.runId, experimentRuns.runId))
    .innerJoin(frictionPoints, and(eq(frictionPoints.orgId, orgId), eq(frictionPoints.reportId, reports.id)))
    .where(ofExperiment(row))
    .groupBy(frictionPoints.fingerprint, experimentRuns.arm)
    .orderBy(desc(sql`count(distinct ${experimentRuns.runId})`), asc(frictionPoints.fingerprint))
    .all();
  return [...Map.groupBy(rows, ({ fingerprint }) => fingerprint)]
    .map(([fingerprint, rowsOfPoint]) => ({
      fingerprint,
      title: rowsOfPoint[0]!.title,
      runs: arms.map(({ name }) => rowsOfPoint.find(({ arm }) => arm === name)?.runs ?? 0),
    }))
    .sort((a, b) => spread(b.runs) - spread(a.runs))
    .slice(0, maxPoints);
}

const spread = (runs: number[]): number => Math.max(...runs) - Math.min(...runs);
