import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, real, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";
import { prompts } from "./prompts.ts";
import { runs } from "./runs.ts";

export const calibrationStatuses = ["running", "completed", "stopped"] as const;
/** `refused`: its next runs could not be requested; `failed`: no run with a defect has a report. */
export const calibrationStops = ["budget", "cancelled", "refused", "failed"] as const;
/** Where defects are planted: in sites that evald makes, or in the docs of a prompt. */
export const calibrationSources = ["sites", "docs"] as const;

/** A planted defect, and what a finding must have to name it: one of the categories, and the text in its URL, title or description. */
export type PlantedDefect = {
  kind: string;
  categories: string[];
  /** The page to look at. */
  url: string;
  named: string;
  /** Positions of the edits that plant it. At least one of them must have been applied. Absent: the defect is in the files of the site. */
  edits?: number[];
};

/** A part of a whole, such as 7 of 12. */
export type Count = { n: number; of: number };

/** What a calibration measured. */
export type CalibrationFigures = {
  /** Planted defects that were found and named. */
  found: Count;
  /** Clean sites with a finding of medium severity or more; null: in the docs of a prompt, findings may be right. */
  falseFindings: Count | null;
  /** Pairs of runs on equal copies that differ. */
  falseAlarms: Count;
  failedRuns: number;
  /** Each with the run that shows it. */
  missed: { kind: string; url: string; runId: string }[];
  invented: { title: string; runId: string }[];
  differing: { runId: string; otherId: string }[];
};

/** Measurements of how well an agent and the grading find what is known to be wrong. */
export const calibrations = sqliteTable(
  "calibrations",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    source: text({ enum: calibrationSources }).notNull(),
    /** The prompt of its runs. */
    promptId: text("prompt_id").notNull(),
    agent: text().notNull(),
    requestedModel: text("requested_model"),
    /** The one that answered, once runs have ended. */
    model: text(),
    /** Each is read three times: clean, clean once more, and with defects. */
    sites: integer().notNull(),
    budgetUsd: real("budget_usd"),
    /** Days until it is repeated; null: never. */
    everyDays: integer("every_days"),
    /** When the next one begins; null: it has begun, or there is none. */
    nextAt: timestamp("next_at"),
    status: text({ enum: calibrationStatuses }).notNull(),
    stopReason: text("stop_reason", { enum: calibrationStops }),
    methodology: text(),
    figures: json<CalibrationFigures>("figures"),
    /** The figures that are significantly worse than in the previous calibration; null: this calibration has no figures. */
    worse: json<{ figure: "found" | "falseFindings" | "falseAlarms"; before: Count; now: Count }[]>("worse"),
    spentUsd: real("spent_usd"),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    unique("calibrations_of_org").on(table.orgId, table.id),
    index("calibrations_running").on(table.id).where(sql`${table.status} = 'running'`),
    index("calibrations_due").on(table.nextAt).where(sql`${table.nextAt} is not null`),
    index("calibrations_by_agent").on(
      table.orgId,
      table.source,
      table.agent,
      table.model,
      table.methodology,
      table.completedAt,
    ),
    orgReference("calibrations_prompt", [table.orgId, table.promptId], prompts),
    check("calibrations_source", oneOf(table.source, calibrationSources)),
    check("calibrations_status", oneOf(table.status, calibrationStatuses)),
    check("calibrations_stop_reason", sql`(${table.status} = 'stopped') = (${table.stopReason} is not null)`),
    check("calibrations_completed", sql`(${table.status} = 'running') = (${table.completedAt} is null)`),
    check("calibrations_sites", sql`${table.sites} between 1 and 50`),
  ],
);

const calibrationRoles = ["clean", "equal", "planted"] as const;

/** The runs of calibrations. */
export const calibrationRuns = sqliteTable(
  "calibration_runs",
  {
    orgId: text("org_id").notNull(),
    calibrationId: text("calibration_id").notNull(),
    runId: text("run_id").notNull(),
    /** Number of the site, from 0. */
    site: integer().notNull(),
    role: text({ enum: calibrationRoles }).notNull(),
    /** Empty for clean copies. */
    planted: json<PlantedDefect[]>("planted").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.calibrationId, table.runId] }),
    index("calibration_runs_by_run").on(table.orgId, table.runId),
    orgReference("calibration_runs_calibration", [table.orgId, table.calibrationId], calibrations),
    orgReference("calibration_runs_run", [table.orgId, table.runId], runs),
    check("calibration_runs_role", oneOf(table.role, calibrationRoles)),
  ],
);
