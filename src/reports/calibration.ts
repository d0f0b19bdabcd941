import { Type } from "@sinclair/typebox";
import { and, desc, eq, isNull } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { type Count, calibrations } from "../db/tables/calibrations.ts";
import { count } from "../grading/text.ts";
import { Id, Nullable, Time, toIso } from "../schema.ts";
import { wilson } from "../stats/estimates.ts";
import { round } from "../stats/repeats.ts";

const share = Type.Number({ minimum: 0, maximum: 1 });

/** `n` out of `of` cases, with Wilson's 95% interval of the share. */
const Measured = Type.Object({ n: Type.Integer(), of: Type.Integer(), low: share, high: share }, { title: "Measured" });
type Measured = { n: number; of: number; low: number; high: number };

/** How well an agent finds known problems. */
export const CalibrationFigures = Type.Object(
  {
    calibrationId: Id,
    found: Measured,
    falseFindings: Nullable(Measured),
    falseAlarms: Measured,
    failedRuns: Type.Integer(),
    measuredAt: Time,
  },
  {
    title: "CalibrationFigures",
    description:
      "Planted defects found, clean sites with false findings, and differing pairs of runs on equal copies. null: not calibrated",
  },
);
export type CalibrationFigures = (typeof CalibrationFigures)["static"];

/** Adds the interval to a count. If there were no cases, the interval is the widest possible. */
function toMeasured({ n, of }: Count): Measured {
  const { low, high } = of === 0 ? { low: 0, high: 1 } : wilson(n, of);
  return { n, of, low: round(low ?? 0, 4), high: round(high ?? 1, 4) };
}

type MeasuredRow = Pick<typeof calibrations.$inferSelect, "id" | "figures" | "completedAt">;

/** The figures of a calibration as the API returns them; null if it has none. */
export function toFigures({ id, figures, completedAt }: MeasuredRow): CalibrationFigures | null {
  if (figures === null || completedAt === null) return null;
  const { found, falseFindings, falseAlarms, failedRuns } = figures;
  return {
    calibrationId: id,
    found: toMeasured(found),
    falseFindings: falseFindings && toMeasured(falseFindings),
    falseAlarms: toMeasured(falseAlarms),
    failedRuns,
    measuredAt: toIso(completedAt),
  };
}

type CalibratedAgent = { agent: string; model: string | null; methodology: string };

/** The newest completed calibration of an agent with this model and methodology, on sites that evald generated; null if there is none. */
export function findCalibration(
  { db }: Context,
  org: OrgId,
  { agent, model, methodology }: CalibratedAgent,
): CalibrationFigures | null {
  const row = db
    .select({ id: calibrations.id, figures: calibrations.figures, completedAt: calibrations.completedAt })
    .from(calibrations)
    .where(
      and(
        eq(calibrations.orgId, org),
        eq(calibrations.source, "sites"),
        eq(calibrations.agent, agent),
        model === null ? isNull(calibrations.model) : eq(calibrations.model, model),
        eq(calibrations.methodology, methodology),
      ),
    )
    .orderBy(desc(calibrations.completedAt))
    .limit(1)
    .get();
  return row ? toFigures(row) : null;
}

const percentOf = (share: number): number => Math.round(100 * share);

/** The figures of a calibration in a sentence. */
export const figuresText = ({ found, falseFindings, falseAlarms }: CalibrationFigures): string =>
  [
    `found ${found.n} of ${count(found.of, "planted defect")} (${percentOf(found.low)}–${percentOf(found.high)}%)`,
    ...(falseFindings ? [`false findings on ${falseFindings.n} of ${count(falseFindings.of, "clean site")}`] : []),
    `${count(falseAlarms.n, "false alarm")} in ${count(falseAlarms.of, "pair")}`,
  ].join(", ");

type CalibrationOfReport = {
  agent: { id: string; model: string | null };
  methodology: { id: string };
  calibration: CalibrationFigures | null;
};

/** How far the findings of a report's agent can be trusted, in a sentence. `command`: the command that measures it; null: it has been measured. */
export function calibrationText({ agent: { id, model }, methodology, calibration }: CalibrationOfReport): {
  text: string;
  command: string | null;
} {
  const subject = [id, ...(model === null ? [] : [`with ${model}`])].join(" ");
  if (calibration === null)
    return {
      text: `${subject}, methodology ${methodology.id}: not calibrated yet`,
      command: `evald calibrate --agent ${id}${model === null ? "" : ` --model ${model} --budget-usd 5`}`,
    };
  const day = calibration.measuredAt.slice(0, 10);
  return {
    text: `${subject}, methodology ${methodology.id}: ${figuresText(calibration)}; measured on ${day}`,
    command: null,
  };
}
