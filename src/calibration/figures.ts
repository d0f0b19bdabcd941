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
import { threshold } from "../stats/power.ts";
import { fisherTest } from "../stats/proportions.ts";

export type CalibrationRow = typeof calibrations.$inferSelect;

/** Whether a row belongs to a calibration. */
export const ofCalibration = ({ id, orgId }: CalibrationRow) =>
  and(eq(calibrationRuns.orgId, orgId), eq(calibrationRuns.calibrationId, id));

type Finding = Pick<
  typeof frictionPoints.$inferSelect,
  "fingerprint" | "category" | "severity" | "title" | "description" | "url"
>;
type MeasuredRun = ReturnType<typeof listRuns>[number] & { findings: Finding[] };

/** The figures that the ended runs of a calibration give. Runs without a report don't count. */
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
  const sites = [...Map.groupBy(measured, ({ site }) => site).values()].map(toSiteRuns);
  const metDefects = sites.flatMap(listMetDefects);
  const foundDefects = metDefects.filter(({ isFound }) => isFound);
  // One list per clean copy. Docs that evald didn't make may have defects of their own.
  const falseFindings =
    row.source === "docs" ? null : sites.flatMap(({ clean }) => (clean ? [falseFindingsOf(clean)] : []));
  const equalPairs = sites.flatMap(({ clean, equal }) => (clean && equal ? [{ clean, equal }] : []));
  const differing = equalPairs.filter(({ clean, equal }) => differ(row, clean, equal));
  return {
    found: { n: foundDefects.length, of: metDefects.length },
    falseFindings: falseFindings && {
      n: falseFindings.filter(({ length }) => length > 0).length,
      of: falseFindings.length,
    },
    falseAlarms: { n: differing.length, of: equalPairs.length },
    failedRuns: all.length - measured.length,
    missed: metDefects.flatMap(({ defect: { kind, url }, runId, isFound }) => (isFound ? [] : [{ kind, url, runId }])),
    invented: falseFindings?.flat() ?? [],
    differing: differing.map(({ clean, equal }) => ({ runId: clean.runId, otherId: equal.runId })),
  };
}

/** The runs on the copies of one site: two clean ones that are equal, and one with defects. */
type SiteRuns = Record<"clean" | "equal" | "planted", MeasuredRun | undefined>;

const toSiteRuns = (runsOfSite: MeasuredRun[]): SiteRuns => ({
  clean: runsOfSite.find(({ role }) => role === "clean"),
  equal: runsOfSite.find(({ role }) => role === "equal"),
  planted: runsOfSite.find(({ role }) => role === "planted"),
});

/** The defects that the agent could meet, and whether it found each. */
function listMetDefects({ clean, planted: run }: SiteRuns) {
  if (run === undefined) return [];
  const defects = run.planted.filter((defect) => wasMet(defect, run));
  return defects.map((defect) => ({ defect, runId: run.runId, isFound: hasFound(run, defect, clean) }));
}

/** On a clean copy, every finding that isn't minor is false. */
const falseFindingsOf = ({ runId, findings }: MeasuredRun) =>
  findings.filter(({ severity }) => severity !== "low").map(({ title }) => ({ title, runId }));

/** Whether a run has a finding of a planted defect that the run on the clean copy does not have. */
function hasFound({ findings }: MeasuredRun, defect: PlantedDefect, clean: MeasuredRun | undefined): boolean {
  const cleanFingerprints = new Set(clean?.findings.map(({ fingerprint }) => fingerprint));
  return findings.some((finding) => isAbout(finding, defect) && !cleanFingerprints.has(finding.fingerprint));
}

/** Whether a finding is about a planted defect. Its category must fit, and its URL, title or description must name what is wrong. */
const isAbout = ({ category, url, title, description }: Finding, { categories, named }: PlantedDefect): boolean =>
  categories.includes(category) && [url, title, description].some((text) => text?.includes(named));

/** Whether the agent could meet a defect. If a page changed since the edits were made, they have no effect there. */
function wasMet({ edits }: PlantedDefect, { context }: MeasuredRun): boolean {
  if (edits === undefined) return true;
  const replacements = context?.edits?.replacements ?? [];
  return edits.some((position) => (replacements[position]?.applied ?? 0) > 0);
}

/** Whether two runs on equal copies differ. Runs of a rule-based agent must be equal. Other runs may differ by less than a change that counts. */
function differ({ agent }: CalibrationRow, a: MeasuredRun, b: MeasuredRun): boolean {
  if (isRuleBased(agent)) return a.score !== b.score || fingerprintsOf(a) !== fingerprintsOf(b);
  if (a.score === null || b.score === null) return a.score !== b.score || a.outcome !== b.outcome;
  return a.outcome !== b.outcome || Math.abs(a.score - b.score) >= threshold;
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
  const findings = db
    .select({ reportId, fingerprint, category, severity, title, description, url })
    .from(frictionPoints)
    .where(and(eq(frictionPoints.orgId, orgId), inArray(reportId, reportIds)))
    .all();
  return Map.groupBy(findings, (finding) => finding.reportId);
}

/** The methodology of a calibration's reports and the model that answered; null: no run has a report. */
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
 * The figures that are significantly worse than in the previous calibration of the same agent and model on the same docs. The test is Fisher's exact
 * test at the level of verdicts. The two methodologies may differ.
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
  return (["found", "falseFindings", "falseAlarms"] as const).flatMap((figure) => {
    const [earlier, now] = [before[figure], figures[figure]];
    if (!earlier || !now) return [];
    const wrongOf = ({ n, of }: Count): Count => ({ n: figure === "found" ? of - n : n, of });
    return isWorse(wrongOf(earlier), wrongOf(now)) ? [{ figure, before: earlier, now }] : [];
  });
}

/** Whether more cases are wrong than before, by more than chance explains. */
const isWorse = (before: Count, now: Count): boolean =>
  before.of > 0 &&
  now.of > 0 &&
  now.n / now.of > before.n / before.of &&
  fisherTest({ k: before.n, n: before.of }, { k: now.n, n: now.of }) < alpha;
