import { inArray } from "drizzle-orm";
import type { Context } from "../context.ts";
import { frictionPoints } from "../db/tables/friction.ts";
import type { FrictionPoint } from "../friction/schema.ts";
import { severities } from "../grading/kinds.ts";

/** A friction point in a comparison. */
export type ComparedFriction = Pick<FrictionPoint, "fingerprint" | "severity" | "category" | "title" | "url">;
/** The friction points of some reports, each with the ID or slug of its report. */
type FrictionGroup<T extends ComparedFriction> = { points: { point: T; report: string }[] };

/**
 * The friction points of all groups, without duplicates. If several groups have a point, the last one decides its fields. `seenIn`: for each group,
 * the reports that contain it.
 */
export function mergeFriction<T extends ComparedFriction>(groups: FrictionGroup<T>[]): (T & { seenIn: string[][] })[] {
  const allPoints = groups.flatMap(({ points }, group) => points.map((each) => ({ ...each, group })));
  return [...Map.groupBy(allPoints, ({ point }) => point.fingerprint).values()].map((points) => {
    const { point } = points.at(-1) as (typeof points)[number];
    return {
      ...point,
      seenIn: groups.map((_, i) => points.filter(({ group }) => group === i).map(({ report }) => report)),
    };
  });
}

/** Compares friction points for sorting: the most severe first, then the ones in the most reports. */
export const bySeverity = <T extends ComparedFriction & { seenIn: string[][] }>(a: T, b: T): number =>
  severities.indexOf(a.severity) - severities.indexOf(b.severity) || b.seenIn.flat().length - a.seenIn.flat().length;

/** The friction points of reports, each with the ID of its report, and the number of reports. */
export function readFriction({ db }: Context, reportIds: string[]) {
  const { reportId: report, fingerprint, severity, category, title, url, onPath } = frictionPoints;
  const points = db
    .select({ report, point: { fingerprint, severity, category, title, url, onPath } })
    .from(frictionPoints)
    .where(inArray(report, reportIds))
    .all();
  return { reportCount: new Set(reportIds).size, points };
}
