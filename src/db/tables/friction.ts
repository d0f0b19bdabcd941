import { sql } from "drizzle-orm";
import {
  check,
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  unique,
} from "drizzle-orm/sqlite-core";
import type { TextChange, Visit } from "../../grading/grade.ts";
import { frictionCategories, frictionStates, phases, severities } from "../../grading/kinds.ts";
import type { History } from "../../stats/lifecycle.ts";
import { boolean, json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgs } from "./orgs.ts";
import { prompts } from "./prompts.ts";
import { reports } from "./reports.ts";
import { evalRequests } from "./runs.ts";

export const frictionPoints = sqliteTable(
  "friction_points",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    reportId: text("report_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Position in the report, worst first, from 0. */
    position: integer().notNull(),
    fingerprint: text().notNull(),
    severity: text({ enum: severities }).notNull(),
    phase: text({ enum: phases }).notNull(),
    category: text({ enum: frictionCategories }).notNull(),
    title: text().notNull(),
    description: text().notNull(),
    quote: text(),
    url: text(),
    /** Whether the agent hit it, or the goal depends on its page. */
    onPath: boolean("on_path").notNull().default(true),
    events: json<number[]>("events").notNull(),
    lostSeconds: real("lost_seconds"),
    lostUsd: real("lost_usd"),
    lostPoints: real("lost_points"),
    /** What a session must have done to meet it, such as `read PAGE` or `check ID SUBJECT`. */
    preconditions: json<string[]>("preconditions").notNull(),
  },
  (table) => [
    unique("friction_points_of_org").on(table.orgId, table.id),
    unique("friction_points_of_report").on(table.reportId, table.fingerprint),
    index("friction_points_by_prompt").on(table.orgId, table.promptId, table.fingerprint),
    orgReference("friction_points_report", [table.orgId, table.reportId], reports),
    check("friction_points_severity", oneOf(table.severity, severities)),
    check("friction_points_phase", oneOf(table.phase, phases)),
    check("friction_points_category", oneOf(table.category, frictionCategories)),
    check("friction_points_events", sql`json_array_length(${table.events}) > 0`),
  ],
);

export const recommendations = sqliteTable(
  "recommendations",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    reportId: text("report_id").notNull(),
    priority: integer().notNull(),
    title: text().notNull(),
    action: text().notNull(),
    isConvention: integer("is_convention", { mode: "boolean" }).notNull(),
    url: text(),
    frictionIds: json<string[]>("friction_ids").notNull(),
    expectedGain: real("expected_gain"),
    /** The minimum and maximum of `expectedGain`, if it depends on what was not measured. */
    gain: json<{ low: number; high: number }>("gain"),
    lostPoints: real("lost_points"),
    evidence: json<TextChange>("evidence"),
  },
  (table) => [
    unique("recommendations_of_report").on(table.reportId, table.priority),
    orgReference("recommendations_report", [table.orgId, table.reportId], reports),
    check("recommendations_frictions", sql`json_array_length(${table.frictionIds}) > 0`),
  ],
);

/** What the session did, to determine later which friction points it could have hit: those whose preconditions it meets. */
export const exposures = sqliteTable(
  "exposures",
  {
    reportId: text("report_id").primaryKey(),
    orgId: text("org_id").notNull(),
    visits: json<Visit[]>("visits").notNull(),
    /** The preconditions that it meets, except those about the pages of `visits`. */
    done: json<string[]>("done").notNull(),
    /** Whether no limit ended the session before every page that it read was tested. */
    isComplete: boolean("is_complete").notNull(),
    /** Whether no model chose what to do. */
    byRules: boolean("by_rules").notNull(),
  },
  (table) => [orgReference("exposures_report", [table.orgId, table.reportId], reports)],
);

/** A friction point over the published runs of a prompt, with its lifecycle. Updated whenever a report is published or withdrawn. */
export const frictionLifecycles = sqliteTable(
  "friction_lifecycles",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Empty for the live docs, a digest of the urlMap for a preview. */
    preview: text("place").notNull(),
    fingerprint: text().notNull(),
    /** The newest report that contains it. */
    reportId: text("report_id").notNull(),
    severity: text({ enum: severities }).notNull(),
    state: text({ enum: frictionStates }).notNull(),
    firstSeenAt: timestamp("first_seen_at").notNull(),
    lastSeenAt: timestamp("last_seen_at").notNull(),
    fixedAt: timestamp("fixed_at"),
    /** Runs that hit it, and runs that reached its place, since it was first hit. */
    met: integer().notNull(),
    reached: integer().notNull(),
    lostPoints: real("lost_points"),
    lostSeconds: real("lost_seconds"),
    lostUsd: real("lost_usd"),
    /** Its place according to the newest report, as a page key. */
    page: text(),
    /** Agents and models that hit it, each with the first evaluation in which it did. Only their later runs can miss it. */
    metBy: json<Record<string, string>>("met_by").notNull(),
    preconditions: json<string[]>("preconditions").notNull(),
    life: json<History>("life").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.promptId, table.preview, table.fingerprint] }),
    orgReference("friction_lifecycles_prompt", [table.orgId, table.promptId], prompts),
    orgReference("friction_lifecycles_report", [table.orgId, table.reportId], reports),
    index("friction_lifecycles_of_report").on(table.orgId, table.reportId),
    index("friction_lifecycles_by_fingerprint").on(table.orgId, table.fingerprint),
    check("friction_lifecycles_state", oneOf(table.state, frictionStates)),
    check("friction_lifecycles_severity", oneOf(table.severity, severities)),
  ],
);

/** Recommended fixes that a person marked as done, and the evaluations that verify them. */
export const fixes = sqliteTable(
  "fixes",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    title: text().notNull(),
    /** The fingerprints of the friction points that it should remove. */
    fingerprints: json<string[]>("fingerprints").notNull(),
    doneBy: text("done_by").notNull(),
    note: text(),
    createdAt: timestamp("created_at").notNull(),
    /** The last evaluation that hit it, and the evaluation that was requested to verify the fix. */
    beforeId: text("before_id").notNull(),
    afterId: text("after_id").notNull(),
  },
  (table) => [
    index("fixes_by_prompt").on(table.orgId, table.promptId, table.id),
    orgReference("fixes_prompt", [table.orgId, table.promptId], prompts),
    orgReference("fixes_before", [table.orgId, table.beforeId], evalRequests),
    orgReference("fixes_after", [table.orgId, table.afterId], evalRequests),
  ],
);

/** Dismissed friction points. A dismissal also applies to later reports, until it is undone. */
export const dismissals = sqliteTable(
  "dismissals",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    fingerprints: json<string[]>("fingerprints").notNull(),
    /** Title of the friction point when it was dismissed. */
    title: text().notNull(),
    reason: text().notNull(),
    dismissedBy: text("dismissed_by").notNull(),
    createdAt: timestamp("created_at").notNull(),
    withdrawnBy: text("withdrawn_by"),
    withdrawnAt: timestamp("withdrawn_at"),
  },
  (table) => [
    index("dismissals_of_org").on(table.orgId, table.id),
    foreignKey({ name: "dismissals_org", columns: [table.orgId], foreignColumns: [orgs.id] }),
    check("dismissals_withdrawn", sql`(${table.withdrawnBy} is null) = (${table.withdrawnAt} is null)`),
  ],
);
