import { and, asc, count, desc, eq, gt, inArray, ne, notExists, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { jobs } from "../db/tables/jobs.ts";
import { deliveries, deliveryTries, notifications } from "../db/tables/notifications.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { restartJob } from "../jobs/queue.ts";
import { toIso } from "../schema.ts";
import { mentionsNothingDeleted } from "./deleted.ts";
import { type DestinationRow, getDestinationRow } from "./destinations.ts";
import { type EventType, payloadOf } from "./events.ts";
import { enqueueDelivery, sendEvent } from "./outbox.ts";
import type { Delivery, DeliveryDetail } from "./schema.ts";

/** A destination with this many unfinished deliveries accepts no tests and no replays. */
const maxPending = 100;
/** The maximum number of deliveries that are replayed in one transaction. */
const maxReplayed = 1_000;

type Filter = { status?: Delivery["status"] };

const columns = {
  delivery: deliveries,
  notification: notifications,
  job: { availableAt: jobs.availableAt, state: jobs.state },
};

type DeliveryRow = ReturnType<ReturnType<typeof selectDeliveries>["all"]>[number];

type StoredDelivery = typeof deliveries.$inferSelect;

type Try = typeof deliveryTries.$inferSelect;

/** A delivery with its payload and all tries. Throws not_found. */
export function getDelivery(ctx: Context, org: OrgId, destinationId: string, id: string): DeliveryDetail {
  const row = getDeliveryRow(ctx, org, destinationId, id);
  const tries = groupTries(ctx, org, [row.delivery.id]).get(row.delivery.id) ?? [];
  return {
    ...toDelivery(row, tries),
    payload: JSON.parse(payloadOf(row.notification)),
    log: tries.map(({ attempt, at, ms, status, body, error }) => ({ attempt, at: toIso(at), ms, status, body, error })),
  };
}

/** Newest first. Throws not_found. */
export function listDeliveries(
  ctx: Context,
  org: OrgId,
  destinationId: string,
  { status }: Filter,
  { limit, offset }: Page,
): Paged<Delivery> {
  const { id } = getDestinationRow(ctx, org, destinationId);
  const where = and(
    eq(deliveries.orgId, org),
    eq(deliveries.destinationId, id),
    status && eq(deliveries.status, status),
    mentionsNothingDeleted,
  );
  const rows = selectDeliveries(ctx).where(where).orderBy(desc(deliveries.id)).limit(limit).offset(offset).all();
  const ids = rows.map(({ delivery }) => delivery.id);
  const tries = groupTries(ctx, org, ids);
  return {
    items: rows.map((row) => toDelivery(row, tries.get(row.delivery.id) ?? [])),
    total:
      ctx.db
        .select({ n: count() })
        .from(deliveries)
        .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
        .where(where)
        .get()?.n ?? 0,
  };
}

/** Sends a test event. Throws not_found, and conflict for a disabled destination. */
export function testDestination(ctx: Context, org: OrgId, id: string): DeliveryDetail {
  const destination = getDestinationRow(ctx, org, id);
  checkEnabled(destination);
  checkPending(ctx, org, destination.id);
  const data = { destination: { id: destination.id, name: destination.name } };
  const deliveryId = transaction(ctx.db, (tx) => {
    recordAudit(ctx, org, "destination.tested", destination);
    return sendEvent(ctx, tx, destination, "destination.test", data);
  });
  return getDelivery(ctx, org, destination.id, deliveryId);
}

/**
 * Sends the notification of a delivery again, with the same webhook-id. If the delivery is still being retried, it is tried now, and its number
 * of remaining tries is reset. Otherwise there is a new delivery. Throws not_found, and conflict for a disabled destination.
 */
export function replayDelivery(ctx: Context, org: OrgId, destinationId: string, id: string): DeliveryDetail {
  const destination = getDestinationRow(ctx, org, destinationId);
  const { delivery } = getDeliveryRow(ctx, org, destinationId, id);
  checkEnabled(destination);
  if (delivery.status !== "pending") checkPending(ctx, org, destination.id);
  const replayId = transaction(ctx.db, (tx) => {
    recordAudit(ctx, org, "delivery.replayed", { id: delivery.id, name: destination.name });
    return replay(ctx, tx, destination, delivery);
  });
  return getDelivery(ctx, org, destination.id, replayId);
}

/**
 * Replays what a destination missed, oldest first, at most 1,000 deliveries (see `whereMissed`). Throws not_found, and conflict for a disabled destination.
 */
export function replayMissed(ctx: Context, org: OrgId, destinationId: string): { replayed: number } {
  const destination = getDestinationRow(ctx, org, destinationId);
  checkEnabled(destination);
  return transaction(ctx.db, (tx) => {
    const where = whereMissed(ctx, org, destination.id);
    const missed = selectDeliveries(ctx).where(where).orderBy(asc(deliveries.id)).limit(maxReplayed).all();
    for (const { delivery } of missed) replay(ctx, tx, destination, delivery);
    recordAudit(ctx, org, "destination.replayed", destination, changesOf({}, { deliveries: missed.length }));
    return { replayed: missed.length };
  });
}

/** The number of deliveries that `replayMissed` would replay. */
export const countMissed = (ctx: Context, org: OrgId, destinationId: string): number =>
  ctx.db
    .select({ n: count() })
    .from(deliveries)
    .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
    .leftJoin(jobs, jobOfDelivery)
    .where(whereMissed(ctx, org, destinationId))
    .get()?.n ?? 0;

/**
 * The condition for deliveries that wait for their next try, and for failed ones whose event no other delivery has sent, is sending or will replay.
 */
function whereMissed(ctx: Context, org: OrgId, destinationId: string) {
  const others = alias(deliveries, "others");
  const isSameEvent = and(
    eq(others.orgId, deliveries.orgId),
    eq(others.notificationId, deliveries.notificationId),
    eq(others.destinationId, deliveries.destinationId),
  );
  // A failed delivery is replaced by any other of its event that didn't fail, or that failed later.
  const isReplacement = or(ne(others.status, "failed"), gt(others.id, deliveries.id));
  const replacements = ctx.db.select({ one: sql`1` }).from(others).where(and(isSameEvent, isReplacement));
  const waits = and(eq(deliveries.status, "pending"), eq(jobs.state, "queued"), gt(jobs.availableAt, ctx.now()));
  const isNoTest = ne(notifications.type, "destination.test");
  const isLost = and(eq(deliveries.status, "failed"), isNoTest, notExists(replacements));
  const ofDestination = and(eq(deliveries.orgId, org), eq(deliveries.destinationId, destinationId));
  return and(ofDestination, or(waits, isLost), mentionsNothingDeleted);
}

function checkEnabled({ disabledAt }: DestinationRow): void {
  if (disabledAt !== null) throw conflict("The destination is disabled. Enable it first.");
}

/** Returns the ID of the delivery that sends the notification. */
function replay(ctx: Context, tx: Tx, destination: DestinationRow, { id, status, notificationId }: StoredDelivery) {
  if (status !== "pending") return enqueueDelivery(ctx, tx, destination, notificationId);
  restartJob(ctx, tx, { kind: "delivery", subject: id });
  ctx.signals.deliveryQueued.emit();
  return id;
}

const jobOfDelivery = and(eq(jobs.kind, "delivery"), eq(jobs.subject, deliveries.id));

const selectDeliveries = (ctx: Context) =>
  ctx.db
    .select(columns)
    .from(deliveries)
    .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
    .leftJoin(jobs, jobOfDelivery);

const groupTries = (ctx: Context, org: OrgId, ids: string[]): Map<string, Try[]> =>
  Map.groupBy(
    ctx.db
      .select()
      .from(deliveryTries)
      .where(and(eq(deliveryTries.orgId, org), inArray(deliveryTries.deliveryId, ids)))
      .orderBy(asc(deliveryTries.attempt))
      .all(),
    ({ deliveryId }) => deliveryId,
  );

function toDelivery({ delivery, notification, job }: DeliveryRow, tries: Try[]): Delivery {
  const last = tries.at(-1);
  const { id, notificationId, status, failure, createdAt, completedAt } = delivery;
  // A job with `availableAt` 0 runs as soon as possible, so it isn't waiting.
  const waits = job?.state === "queued" && job.availableAt > 0;
  return {
    id,
    notificationId,
    status,
    failure,
    type: notification.type as EventType,
    tries: tries.length,
    lastStatus: last?.status ?? null,
    lastMs: last?.ms ?? null,
    nextTryAt: waits ? toIso(job.availableAt) : null,
    createdAt: toIso(createdAt),
    completedAt: toIso(completedAt),
  };
}

function getDeliveryRow(ctx: Context, org: OrgId, destinationId: string, id: string): DeliveryRow {
  const { id: destination } = getDestinationRow(ctx, org, destinationId);
  const [row] = selectDeliveries(ctx)
    .where(
      and(
        eq(deliveries.orgId, org),
        eq(deliveries.destinationId, destination),
        eq(deliveries.id, id.toLowerCase()),
        mentionsNothingDeleted,
      ),
    )
    .all();
  if (!row) throw notFound(`No delivery of this destination has the ID ${id}.`);
  return row;
}

/** Throws conflict if too many deliveries are waiting. */
function checkPending(ctx: Context, org: OrgId, destinationId: string): void {
  const pending = and(
    eq(deliveries.orgId, org),
    eq(deliveries.destinationId, destinationId),
    eq(deliveries.status, "pending"),
  );
  if ((ctx.db.select({ n: count() }).from(deliveries).where(pending).get()?.n ?? 0) >= maxPending)
    throw conflict(`This destination has ${maxPending} unfinished deliveries. Wait until some have ended.`);
}
