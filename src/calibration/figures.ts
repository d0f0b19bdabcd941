import { and, asc, desc, eq, inArray, isNotNull, isNull, lt, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { alpha } from "../comparisons/evidence.ts";
import type { Context } from "../context.ts";
import {
  type CalibrationFigures,
  type Count,
  calibrationRuns,
  calibrations,
  type PlantedDefect,
} from "../db/tables/calibrations.ts";
import { frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { costOfRuns } from "../runs/spending.ts";
import { fisherTest } from "../stats/hypothesis-tests.ts";
import { threshold } from "../stats/power.ts";

export type CalibrationRow = typeof calibrations.$inferSelect;

/** Whether a row belongs to a calibration. */
export const ofCalibration = ({ id, orgId }: CalibrationRow) =>
  and(eq(calibrationRuns.orgId, orgId), eq(calibrationRuns.calibrationId, id));

type Finding = Pick<
  typeof frictionPoints.$inferSelect,
  "fingerprint" | "category" | "severity" | "title" | "description" | "url"
>;
type MeasuredRun = ReturnType<typeof listRuns>[number] & { findings: Finding[] };

/** What its ended runs measured. Runs without a report don't count. */
export function figuresOf(ctx: Context, row: CalibrationRow): CalibrationFigures {
  const all = listRuns(ctx, row);
  const findings = listFindings(
    ctx,
    row,
    all.flatMap(({ reportId }) => reportId ?? []),
  );
  const measured = all.flatMap((run): MeasuredRun[] =>
    run.reportId === null ? [] : [{ ...run, findings: findings.get(run.reportId) ?? [] }],
  );
  const bySite = [...Map.groupBy(measured, ({ site }) => site).values()].map((ofSite) => ({
    clean: ofSite.find(({ role }) => role === "clean"),
    equal: ofSite.find(({ role }) => role === "equal"),
    planted: ofSite.find(({ role }) => role === "planted"),
  }));
  const looked = bySite.flatMap(({ clean, planted }) =>
    (planted?.planted ?? [])
      .filter((defect) => planted && wasMet(defect, planted))
      .map((defect) => ({ defect, runId: planted?.runId ?? "", isFound: isFound(defect, planted, clean) })),
  );
  const cleanRuns = bySite.flatMap(({ clean }) => clean ?? []);
  const invented = cleanRuns.map(({ runId, findings }) => ({ runId, serious: findings.filter(isSerious) }));
  const pairs = bySite.flatMap(({ clean, equal }) => (clean && equal ? [{ clean, equal }] : []));
  const differing = pairs.filter(({ clean, equal }) => differ(row, clean, equal));
  return {
    found: { n: looked.filter(({ isFound }) => isFound).length, of: looked.length },
    falseFindings:
      row.source === "docs"
        ? null
        : { n: invented.filter(({ serious }) => serious.length > 0).length, of: cleanRuns.length },
    falseAlarms: { n: differing.length, of: pairs.length },
    failedRuns: all.length - measured.length,
    missed: looked.flatMap(({ defect: { kind, url }, runId, isFound }) => (isFound ? [] : [{ kind, url, runId }])),
    invented:
      row.source === "docs"
        ? []
        : invented.flatMap(({ runId, serious }) => serious.map(({ title }) => ({ title, runId }))),
    differing: differing.map(({ clean, equal }) => ({ runId: clean.runId, otherId: equal.runId })),
  };
}

const isSerious = ({ severity }: Finding): boolean => severity !== "low";

/** A finding of the defect that the clean copy does not have. */
function isFound(defect: PlantedDefect, planted: MeasuredRun | undefined, clean: MeasuredRun | undefined): boolean {
  const known = new Set(clean?.findings.map(({ fingerprint }) => fingerprint));
  return (planted?.findings ?? []).some((finding) => names(finding, defect) && !known.has(finding.fingerprint));
}

/** Whether a finding names a planted defect: by its category, and by what is wrong in its URL, title or description. */
const names = ({ category, url, title, description }: Finding, { categories, named }: PlantedDefect): boolean =>
  categories.includes(category) && [url, title, description].some((text) => text?.includes(named));

/** Whether the agent met a defect that is planted by edits: pages may have changed since they were read for it. */
function wasMet({ edits }: PlantedDefect, { context }: MeasuredRun): boolean {
  if (edits === undefined) return true;
  const replacements = context?.edits?.replacements ?? [];
  return edits.some((position) => (replacements[position]?.applied ?? 0) > 0);
}

/** Whether two runs on equal copies differ as a change would: for an agent that always does the same, in anything. */
function differ({ agent }: CalibrationRow, a: MeasuredRun, b: MeasuredRun): boolean {
  if (isRuleBased(agent)) return a.score !== b.score || fingerprintsOf(a) !== fingerprintsOf(b);
  const change = a.score === null || b.score === null ? (a.score === b.score ? 0 : threshold) : a.score - b.score;
  return a.outcome !== b.outcome || Math.abs(change) >= threshold;
}

const fingerprintsOf = ({ findings }: MeasuredRun): string =>
  findings
    .map(({ fingerprint }) => fingerprint)
    .sort()
    .join();

function listRuns({ db }: Context, row: CalibrationRow) {
  return db
    .select({
      runId: calibrationRuns.runId,
      site: calibrationRuns.site,
      role: calibrationRuns.role,
      planted: calibrationRuns.planted,
      reportId: reports.id,
      score: reports.score,
      outcome: reports.outcome,
      context: reports.context,
    })
    .from(calibrationRuns)
    .leftJoin(reports, and(eq(reports.orgId, row.orgId), eq(reports.runId, calibrationRuns.runId)))
    .where(ofCalibration(row))
    .orderBy(asc(calibrationRuns.site), asc(calibrationRuns.runId))
    .all();
}

function listFindings({ db }: Context, { orgId }: CalibrationRow, reportIds: string[]): Map<string, Finding[]> {
  const { reportId, fingerprint, category, severity, title, description, url } = frictionPoints;
  const found = db
    .select({ reportId, fingerprint, category, severity, title, description, url })
    .from(frictionPoints)
    .where(and(eq(frictionPoints.orgId, orgId), inArray(reportId, reportIds)))
    .all();
  return Map.groupBy(found, (each) => each.reportId);
}

/** The methodology of its reports and the model that answered; null: no run has a report. */
export function measurerOf({ db }: Context, row: CalibrationRow) {
  return (
    db
      .select({ methodology: sql<string>`json_extract(${reports.methodology}, '$.id')`, model: runs.model })
      .from(calibrationRuns)
      .innerJoin(runs, eq(runs.id, calibrationRuns.runId))
      .innerJoin(reports, eq(reports.runId, runs.id))
      .where(ofCalibration(row))
      .orderBy(desc(runs.id))
      .limit(1)
      .get() ?? null
  );
}

/** What all its runs cost, with estimates, in USD. */
export const costOf = ({ db }: Context, row: CalibrationRow): number =>
  costOfRuns(db, db.select({ id: calibrationRuns.runId }).from(calibrationRuns).where(ofCalibration(row)));

/**
 * The figures that are significantly worse than in the previous calibration of the same agent and model on the same docs, by Fisher's exact test
 * at the level of verdicts. The methodology may be another one.
 */
export function worseFigures(
  { db }: Context,
  row: CalibrationRow,
  model: string | null,
  figures: CalibrationFigures,
): CalibrationRow["worse"] {
  const before = db
    .select({ figures: calibrations.figures })
    .from(calibrations)
    .where(
      and(
        eq(calibrations.orgId, row.orgId),
        eq(calibrations.source, row.source),
        eq(calibrations.agent, row.agent),
        model === null ? isNull(calibrations.model) : eq(calibrations.model, model),
        isNotNull(calibrations.figures),
        row.source === "docs" ? eq(calibrations.promptId, row.promptId) : undefined,
        lt(calibrations.id, row.id),
      ),
    )
    .orderBy(desc(calibrations.id))
    .limit(1)
    .get()?.figures;
  if (!before) return [];
  const changes = [
    { figure: "found" as const, before: missedOf(before.found), now: missedOf(figures.found) },
    { figure: "falseFindings" as const, before: before.falseFindings, now: figures.falseFindings },
    { figure: "falseAlarms" as const, before: before.falseAlarms, now: figures.falseAlarms },
  ];
  return changes.flatMap(({ figure, before: earlier, now }) =>
    earlier && now && isWorse(earlier, now)
      ? [figure === "found" ? { figure, before: before.found, now: figures.found } : { figure, before: earlier, now }]
      : [],
  );
}

const missedOf = ({ n, of }: Count): Count => ({ n: of - n, of });

/** Whether more of the later ones are wrong, and chance does not explain it. */
const isWorse = (before: Count, now: Count): boolean =>
  before.of > 0 &&
  now.of > 0 &&
  now.n / now.of > before.n / before.of &&
  fisherTest({ k: before.n, n: before.of }, { k: now.n, n: now.of }) < alpha;
