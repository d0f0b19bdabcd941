import { type TSchema, Type } from "@sinclair/typebox";
import { type Column, getTableColumns } from "drizzle-orm";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { provenances } from "../agents/agent.ts";
import { maxArchiveBytes } from "../archives/archive-check.ts";
import { digest } from "../archives/schema.ts";
import { Comparison } from "../comparisons/compare.ts";
import { Limits } from "../config/limits.ts";
import { auditEntries } from "../db/tables/audit.ts";
import { fieldFriction, fieldReports } from "../db/tables/field.ts";
import { dismissals, exposures, fixes, frictionPoints, recommendations } from "../db/tables/friction.ts";
import { gateStatuses, gates } from "../db/tables/gates.ts";
import { inboxMarks } from "../db/tables/inbox.ts";
import { earlierAttempts, jobs } from "../db/tables/jobs.ts";
import { destinations } from "../db/tables/notifications.ts";
import { orgs } from "../db/tables/orgs.ts";
import { archives, prompts, providers } from "../db/tables/prompts.ts";
import { gradings, regradeStatuses, regrades, reports, shareLinks } from "../db/tables/reports.ts";
import { artifacts, evalRequests, runStatuses, runs, sessionEvents } from "../db/tables/runs.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import { budgets, spending, spendingDetails } from "../db/tables/spending.ts";
import { suites } from "../db/tables/suites.ts";
import { listedPages } from "../db/tables/trends.ts";
import { FrictionPoint } from "../friction/schema.ts";
import { eventTypes } from "../notifications/events.ts";
import { PromptAgents, WorkerLabels } from "../prompts/agent-schema.ts";
import { DeclaredCheck } from "../prompts/check-schema.ts";
import { AdditionalUrl, BasisChange, StoredBasis, SuccessBar, SuiteReference, Tags } from "../prompts/schema.ts";
import { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { artifactName, maxArtifactBytes } from "../reports/artifacts.ts";
import { FixDetails, GradeFields, TextChange } from "../reports/grade-schema.ts";
import { Fingerprint, mapOf, Nullable, OneOf, shape } from "../schema.ts";
import { Suite } from "../suites/schema.ts";
import { omittedTables } from "./omitted-tables.ts";
import { task } from "./task-schema.ts";

/** Version of the file format. Files of a newer version are rejected. */
export const formatVersion = 1;

/** The end of the year 9999, in epoch ms: the maximum of times and counts. */
const maxTime = Date.parse("9999-12-31T23:59:59.999Z");
const textMap = mapOf(Type.String());
const eventNumbers = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });
const uuid = Type.String(shape("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "a lowercase UUID"));
const fingerprints = Type.Array(Fingerprint, { minItems: 1 });
const gzip = shape("^H4sI[A-Za-z0-9+/]*={0,2}$", "a gzip file as base64");
const base64 = shape("^[A-Za-z0-9+/]+={0,2}$", "base64");
/** Each group of up to 3 bytes is 4 characters. */
const base64Chars = (bytes: number): number => 4 * Math.ceil(bytes / 3);
const slug = shape("^[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{8}$", "the slug of a report");
const preconditions = Type.Array(Type.String({ maxLength: 3000 }));
/** The service's own fields of an event. The fields of the event's type (`data`) must not override them. */
const reservedFields = ["seq", "at", "tMs", "type", "source"];
const data = Type.Object({}, { additionalProperties: true });
// A grade contains no field that depends on other reports.
const friction = Type.Omit(FrictionPoint, ["id", "seenIn", "state", "dismissed"]).properties;
const count = Type.Integer({ minimum: 0 });
const visit = Type.Object({
  page: Type.String(),
  url: Type.String(),
  reads: count,
  misses: count,
  guesses: count,
  errors: count,
  found: Type.Partial(Type.Record(OneOf(provenances), count)),
});
const { gain, lostPoints } = FixDetails;
const evidence = Nullable(TextChange);
const recommendationColumns = {
  priority: Type.Integer({ minimum: 1 }),
  frictionIds: Type.Array(uuid, { minItems: 1 }),
};
const grade = Type.Object({
  ...GradeFields.properties,
  frictions: Type.Array(
    Type.Object({ ...friction, id: uuid, fingerprint: Fingerprint, events: eventNumbers, preconditions }),
  ),
  recommendations: Type.Array(
    Type.Object({
      ...recommendationColumns,
      id: uuid,
      title: Type.String(),
      action: Type.String(),
      isConvention: Type.Boolean(),
      url: Nullable(Type.String()),
      expectedGain: Nullable(Type.Number()),
      gain,
      evidence,
      lostPoints,
    }),
  ),
});
const judging = Type.Array(
  Type.Object(
    {
      seq: Type.Integer({ minimum: 0 }),
      at: Type.Integer({ minimum: 0, maximum: maxTime }),
      tMs: Type.Integer({ minimum: 0, maximum: maxTime }),
      type: OneOf(["milestone", "usage", "error"]),
      source: OneOf(["runner"]),
    },
    { additionalProperties: true },
  ),
);

const isFinal = (status: string) => status !== "pending" && status !== "running";

type ExportShape = {
  table: SQLiteTable;
  /** Columns that belong to this instance, in addition to the owner: schedule state and request secrets. */
  omittedColumns?: readonly string[];
  /** Columns that an export never contains, with their names in words: secrets and email addresses. */
  withheldColumns?: Record<string, string>;
  /** Stricter schemas for columns than their table type. */
  columnSchemas?: Record<string, TSchema>;
};

/** The exported row types, in file order. From `run` on, the rows of a run are grouped. */
const typedShapes = {
  organization: {
    table: orgs,
    omittedColumns: ["id", "name", "schedulesPausedAt", "createdAt"],
    withheldColumns: { resultsToken: "URL of the results page", signInPolicy: "how people may sign in" },
    columnSchemas: { judgeModels: Type.Array(Type.String({ maxLength: 300 }), { maxItems: 20 }) },
  },
  provider: { table: providers },
  suite: {
    table: suites,
    columnSchemas: { ...Type.Pick(Suite, ["slots", "limits", "agents"]).properties, version: Suite.properties.version },
  },
  archive: {
    table: archives,
    columnSchemas: {
      digest: Type.String(digest),
      data: Type.String({ ...gzip, maxLength: base64Chars(maxArchiveBytes) }),
    },
  },
  prompt: {
    table: prompts,
    omittedColumns: ["nextEvaluationAt"],
    columnSchemas: {
      wordings: Type.Array(Type.String({ minLength: 1, maxLength: 300 }), { maxItems: 5 }),
      basis: StoredBasis,
      basisChange: BasisChange,
      suite: SuiteReference,
      additionalUrls: Type.Array(AdditionalUrl, { maxItems: 100 }),
      runsPerEval: Type.Integer({ minimum: 1, maximum: 50 }),
      templateVars: Type.Array(Type.String()),
      templateDefaults: textMap,
      declaredChecks: Type.Array(DeclaredCheck, { maxItems: 50 }),
      tags: Tags,
      successBar: SuccessBar,
      workerLabels: WorkerLabels,
      workspace: WorkspaceSetup,
      agents: PromptAgents,
      limits: Limits,
    },
  },
  listed_page: { table: listedPages },
  eval_request: { table: evalRequests, omittedColumns: ["status"] },
  scheduled_evaluation: { table: scheduledEvaluations },
  fix: { table: fixes, columnSchemas: { fingerprints } },
  dismissal: { table: dismissals, columnSchemas: { fingerprints } },
  field_friction: {
    table: fieldFriction,
    columnSchemas: { fingerprint: Fingerprint, fingerprints: Type.Array(Fingerprint, { minItems: 1, maxItems: 100 }) },
  },
  field_report: { table: fieldReports },
  gate: {
    table: gates,
    columnSchemas: {
      baseRunIds: Type.Array(uuid),
      others: Type.Array(
        Type.Object({
          promptId: uuid,
          headRequestId: uuid,
          baseRequestId: Nullable(uuid),
          baseRunIds: Nullable(Type.Array(uuid)),
          model: Nullable(Type.String()),
        }),
      ),
      comparison: Comparison,
      agents: Type.Array(
        Type.Object({
          agent: Type.String(),
          model: Nullable(Type.String()),
          reason: Type.String(),
          status: OneOf(["passed", "failed", "error"]),
          comparison: Nullable(Comparison),
        }),
      ),
      status: OneOf(gateStatuses.filter(isFinal)),
    },
  },
  regrade: {
    table: regrades,
    columnSchemas: {
      // A time before 1970 is negative, and covers all reports.
      since: Type.Integer({ minimum: -maxTime, maximum: maxTime }),
      status: OneOf(regradeStatuses.filter(isFinal)),
    },
  },
  destination: {
    table: destinations,
    omittedColumns: ["disabledAt", "disableReason", "failingSince", "overlapUntil"],
    withheldColumns: { sealed: "secrets of destinations", recipients: "recipients of destinations" },
    columnSchemas: {
      url: Type.String({ ...shape("^https?://", "an http or https URL"), maxLength: 2000 }),
      events: Type.Array(OneOf(eventTypes)),
    },
  },
  inbox_mark: {
    table: inboxMarks,
    withheldColumns: { assignee: "assignees in the inbox" },
    columnSchemas: { itemId: Type.String({ minLength: 1, maxLength: 500 }) },
  },
  spending: { table: spending, columnSchemas: { usd: Type.Number({ minimum: 0 }) } },
  spending_detail: {
    table: spendingDetails,
    // Empty if it was neither a person nor an API key.
    columnSchemas: {
      usd: Type.Number({ minimum: 0 }),
      personId: Type.String({ maxLength: 100 }),
      keyId: Type.String({ maxLength: 100 }),
    },
  },
  budget: { table: budgets },
  audit_entry: {
    table: auditEntries,
    // The IDs of people are not UUIDs. An entry keeps what was current when it was made.
    columnSchemas: {
      actorId: Type.String({ maxLength: 100 }),
      targetId: Type.String({ maxLength: 500 }),
      requestId: Type.String({ maxLength: 100 }),
      changes: Type.Array(
        Type.Object({
          field: Type.String(),
          before: Type.Optional(Type.Unknown()),
          after: Type.Optional(Type.Unknown()),
        }),
      ),
    },
  },
  run: {
    table: runs,
    omittedColumns: ["idempotencyKey", "idempotencyHash", "reservedUsd", "waitingFor"],
    columnSchemas: { urlMap: textMap, templateArgs: textMap, task, status: OneOf(runStatuses.filter(isFinal)) },
  },
  job: {
    table: jobs,
    omittedColumns: ["leaseUntil"],
    columnSchemas: {
      pool: OneOf(["runs"]),
      kind: OneOf(["run"]),
      subject: uuid,
      state: OneOf(["done", "failed", "cancelled"]),
    },
  },
  attempt: { table: earlierAttempts },
  event: { table: sessionEvents, columnSchemas: { data } },
  artifact: {
    table: artifacts,
    columnSchemas: {
      name: Type.String(shape(artifactName.source, "the name of a .webp, .diff or .jsonl file")),
      // An image, a diff or output, as base64.
      data: Type.String({ ...base64, maxLength: base64Chars(maxArtifactBytes) }),
    },
  },
  report: {
    table: reports,
    omittedColumns: ["agent", "agentVersion"],
    columnSchemas: {
      ...GradeFields.properties,
      slug: Type.String({ ...slug, maxLength: 100 }),
    },
  },
  reach: {
    table: exposures,
    columnSchemas: { visits: Type.Array(visit), done: Type.Array(Type.String()) },
  },
  friction_point: {
    table: frictionPoints,
    columnSchemas: {
      events: eventNumbers,
      preconditions,
      fingerprint: Fingerprint,
      position: Type.Integer({ minimum: 0 }),
    },
  },
  recommendation: {
    table: recommendations,
    columnSchemas: { ...recommendationColumns, gain, evidence },
  },
  grading: {
    table: gradings,
    columnSchemas: { grade, judging, hash: Type.String(digest), repeat: Type.Integer({ minimum: 1 }) },
  },
  share_link: {
    table: shareLinks,
    columnSchemas: { tokenHash: Type.String(shape("^[A-Za-z0-9+/]{43}=$", "a SHA-256 as base64")) },
  },
} satisfies Record<string, ExportShape>;

export type RowType = keyof typeof typedShapes;
export const shapes: Record<RowType, ExportShape> = typedShapes;
/** In the order of a file. */
export const rowTypes = Object.keys(shapes) as RowType[];

/** Whether rows of a type belong to a run, which they follow in a file. */
export const isPartOfRun = (type: RowType): boolean => rowTypes.indexOf(type) > rowTypes.indexOf("run");

const auditLogWords = "audit log";

/** The types that belong to the organization and to no prompt, with their words. The export of a prompt leaves them out. */
export const typesOfOrg: Partial<Record<RowType, string>> = {
  organization: "settings of the organization",
  suite: "suites",
  dismissal: "dismissals",
  field_friction: "friction from the field",
  field_report: "reports from the field",
  destination: "destinations",
  inbox_mark: "marks in the inbox",
  spending: "spending",
  spending_detail: "details of the spending",
  budget: "budgets of prompts and tags",
  audit_entry: auditLogWords,
};

/** What an export does not contain, in words. `hasAuditLog`: whether the audit log was requested too. */
export function omissionsOf(isOfPrompt: boolean, hasAuditLog: boolean): string[] {
  const withheld = rowTypes.flatMap((type) => Object.values(shapes[type].withheldColumns ?? {}));
  const ofOrg = Object.values(typesOfOrg).filter((words) => words !== auditLogWords);
  const auditLog = hasAuditLog && !isOfPrompt ? [] : [auditLogWords];
  return [...(isOfPrompt ? ofOrg : []), ...withheld, ...Object.keys(omittedTables), ...auditLog];
}

/** The columns of a line, in the order of the table. */
export function columnsOf(type: RowType): [name: string, column: Column][] {
  const { table, omittedColumns = [], withheldColumns = {} } = shapes[type];
  const without = ["orgId", ...omittedColumns, ...Object.keys(withheldColumns)];
  return Object.entries(getTableColumns(table)).filter(([name]) => !without.includes(name));
}

/** The columns of a primary key that has several; empty: the key is one column. In the order of the table. */
export function keyOf(type: RowType): [name: string, column: Column][] {
  const { table } = shapes[type];
  const key: Column[] = getTableConfig(table).primaryKeys[0]?.columns ?? [];
  return Object.entries(getTableColumns(table)).filter(([, column]) => key.includes(column));
}

/** The schema of a row type. */
export function schemaOf(type: RowType): TSchema {
  const properties = columnsOf(type).map(([name, column]) => {
    const value = shapes[type].columnSchemas?.[name] ?? defaultSchema(name, column);
    return [name, column.notNull ? value : Nullable(value)];
  });
  return Type.Object(Object.fromEntries(properties), { additionalProperties: false });
}

function defaultSchema(name: string, { dataType, columnType, enumValues }: Column): TSchema {
  if (/(^id|Id)$/.test(name)) return uuid;
  if (enumValues?.length) return OneOf(enumValues);
  if (dataType === "string") return Type.String();
  if (dataType === "boolean") return Type.Boolean();
  if (dataType === "number")
    return columnType === "SQLiteReal" ? Type.Number() : Type.Integer({ minimum: 0, maximum: maxTime });
  throw new Error(`The column ${name} needs its own import schema.`);
}

/** The first reserved field name in the data of an event; undefined if there is none. */
export const findReservedField = (row: Record<string, unknown>): string | undefined =>
  reservedFields.find((name) => Object.hasOwn(row.data as object, name));

/** A row type in words. */
export const labelOf = (type: RowType): string => labels[type] ?? type.replaceAll("_", " ");

const labels: Partial<Record<RowType, string>> = { eval_request: "evaluation" };
