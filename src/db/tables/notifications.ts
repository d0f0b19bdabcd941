import { sql } from "drizzle-orm";
import { blob, check, index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";

export const destinationKinds = ["webhook", "slack", "email"] as const;
/** Why nothing is sent. `request`: a member disabled it; `gone`: it answered 410; `failing`: nothing arrived between the first and the last try of a delivery. */
export const disableReasons = ["request", "gone", "failing"] as const;
export const deliveryStatuses = ["pending", "delivered", "failed"] as const;
/**
 * Why a delivery failed for good. `exhausted`: all tries failed; `interrupted`: the service crashed too often during them; `deleted`: when it was
 * due, something that it is about was deleted.
 */
export const deliveryFailures = ["exhausted", "gone", "disabled", "interrupted", "deleted"] as const;

/** Where an organization is notified: a webhook, a Slack channel, or the inboxes of members. */
export const destinations = sqliteTable(
  "destinations",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    kind: text({ enum: destinationKinds }).notNull(),
    name: text().notNull(),
    /** The URL of a webhook, or only the origin of Slack's URL, since the rest is secret; null: email. */
    url: text(),
    /** The signing secrets and headers of a webhook or the URL of Slack, encrypted as model keys are; null: email. */
    sealed: blob({ mode: "buffer" }),
    /** Email addresses of members; null: the addresses of all owners. */
    recipients: json<string[]>("recipients"),
    events: json<string[]>("events").notNull(),
    disabledAt: timestamp("disabled_at"),
    disableReason: text("disable_reason", { enum: disableReasons }),
    /** The first failed try since the last success; null: the last try succeeded. */
    failingSince: timestamp("failing_since"),
    /** Until then deliveries are also signed with the previous secret. */
    overlapUntil: timestamp("overlap_until"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    unique("destinations_of_org").on(table.orgId, table.id),
    check("destinations_kind", oneOf(table.kind, destinationKinds)),
    check(
      "destinations_address",
      sql`(${table.kind} = 'email') = (${table.url} is null) and (${table.url} is null) = (${table.sealed} is null)`,
    ),
    check("destinations_disabled", sql`(${table.disabledAt} is null) = (${table.disableReason} is null)`),
    check("destinations_disable_reason", oneOf(table.disableReason, disableReasons)),
  ],
);

/** The outbox: one row per event that a destination wants, written in the transaction of the event. */
export const notifications = sqliteTable(
  "notifications",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    type: text().notNull(),
    /** The key of an event that is sent once, such as a budget in a month. */
    onceKey: text("once_key"),
    data: json<Record<string, unknown>>("data").notNull(),
    /** The prompt that it is about; null: several, or none. */
    promptId: text("prompt_id"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    unique("notifications_of_org").on(table.orgId, table.id),
    unique("notifications_once").on(table.orgId, table.onceKey),
    index("notifications_of_prompt").on(table.orgId, table.promptId).where(sql`${table.promptId} is not null`),
    index("notifications_of_several").on(table.orgId, table.id).where(sql`${table.promptId} is null`),
  ],
);

/** A notification to a destination, with one job. A replay is a delivery of its own. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    notificationId: text("notification_id").notNull(),
    destinationId: text("destination_id").notNull(),
    status: text({ enum: deliveryStatuses }).notNull(),
    failure: text({ enum: deliveryFailures }),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    unique("deliveries_of_org").on(table.orgId, table.id),
    index("deliveries_by_destination").on(table.orgId, table.destinationId, table.id),
    // For operators, who see the failures of all organizations.
    index("deliveries_failed").on(table.id).where(sql`${table.status} = 'failed'`),
    index("deliveries_by_notification").on(table.orgId, table.notificationId),
    orgReference("deliveries_notification", [table.orgId, table.notificationId], notifications),
    orgReference("deliveries_destination", [table.orgId, table.destinationId], destinations),
    check("deliveries_status", oneOf(table.status, deliveryStatuses)),
    check("deliveries_completed", sql`(${table.status} = 'pending') = (${table.completedAt} is null)`),
    check("deliveries_failure", sql`(${table.status} = 'failed') = (${table.failure} is not null)`),
  ],
);

/** The tries of a delivery. */
export const deliveryTries = sqliteTable(
  "delivery_tries",
  {
    orgId: text("org_id").notNull(),
    deliveryId: text("delivery_id").notNull(),
    attempt: integer().notNull(),
    at: timestamp("at").notNull(),
    ms: integer().notNull(),
    /** HTTP status; null: no response. */
    status: integer(),
    /** Start of the response body; null: none. */
    body: text(),
    /** Why there was no response, or why nothing was sent. */
    error: text(),
  },
  (table) => [
    primaryKey({ columns: [table.deliveryId, table.attempt] }),
    orgReference("delivery_tries_delivery", [table.orgId, table.deliveryId], deliveries),
  ],
);
