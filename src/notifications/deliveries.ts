import { and, asc, count, desc, eq, inArray } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { jobs } from "../db/tables/jobs.ts";
import { deliveries, deliveryTries, notifications } from "../db/tables/notifications.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toIso } from "../schema.ts";
import { getDestinationRow } from "./destinations.ts";
import { type EventType, payloadOf } from "./events.ts";
import { enqueueDelivery, sendEvent } from "./outbox.ts";
import type { Delivery, DeliveryDetail } from "./schema.ts";

/** Unfinished tests and replays of a destination. */
const maxPending = 100;

type Filter = { status?: Delivery["status"] };

const columns = {
  delivery: deliveries,
  notification: notifications,
  job: { availableAt: jobs.availableAt, state: jobs.state },
};

type DeliveryRow = ReturnType<ReturnType<typeof selectDeliveries>["all"]>[number];

type Try = typeof deliveryTries.$inferSelect;

export function getDelivery(ctx: Context, org: OrgId, destinationId: string, id: string): DeliveryDetail {
  const row = getDeliveryRow(ctx, org, destinationId, id);
  const tries = groupTries(ctx, org, [row.delivery.id]).get(row.delivery.id) ?? [];
  return {
    ...toDelivery(row, tries),
    payload: JSON.parse(payloadOf(row.notification)),
    log: tries.map(({ attempt, at, ms, status, body, error }) => ({
      attempt,
      at: toIso(at),
      ms,
      status,
      body,
      error,
    })),
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
  );
  const rows = selectDeliveries(ctx).where(where).orderBy(desc(deliveries.id)).limit(limit).offset(offset).all();
  const tries = groupTries(
    ctx,
    org,
    rows.map(({ delivery }) => delivery.id),
  );
  return {
    items: rows.map((row) => toDelivery(row, tries.get(row.delivery.id) ?? [])),
    total: ctx.db.select({ n: count() }).from(deliveries).where(where).get()?.n ?? 0,
  };
}

/** Sends a test event. Throws not_found, and conflict for a disabled destination. */
export function testDestination(ctx: Context, org: OrgId, id: string): DeliveryDetail {
  const destination = getDestinationRow(ctx, org, id);
  if (destination.disabledAt !== null) throw conflict("The destination is disabled. Enable it first.");
  checkPending(ctx, org, destination.id);
  const data = { destination: { id: destination.id, name: destination.name } };
  const deliveryId = transaction(ctx.db, (tx) => sendEvent(ctx, tx, destination, "destination.test", data));
  return getDelivery(ctx, org, destination.id, deliveryId);
}

/** Sends the notification of a delivery again, with the same webhook-id. Throws not_found, and conflict for a disabled destination or an unfinished delivery. */
export function replayDelivery(ctx: Context, org: OrgId, destinationId: string, id: string): DeliveryDetail {
  const destination = getDestinationRow(ctx, org, destinationId);
  const { delivery } = getDeliveryRow(ctx, org, destinationId, id);
  if (destination.disabledAt !== null) throw conflict("The destination is disabled. Enable it first.");
  if (delivery.status === "pending") throw conflict("The delivery has not ended yet.");
  checkPending(ctx, org, destination.id);
  const replayId = transaction(ctx.db, (tx) => enqueueDelivery(ctx, tx, destination, delivery.notificationId));
  return getDelivery(ctx, org, destination.id, replayId);
}

const selectDeliveries = (ctx: Context) =>
  ctx.db
    .select(columns)
    .from(deliveries)
    .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
    .leftJoin(jobs, and(eq(jobs.kind, "delivery"), eq(jobs.subject, deliveries.id)));

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
      and(eq(deliveries.orgId, org), eq(deliveries.destinationId, destination), eq(deliveries.id, id.toLowerCase())),
    )
    .all();
  if (!row) throw notFound(`No delivery of this destination has the ID ${id}.`);
  return row;
}

/** Throws conflict while many deliveries wait. */
function checkPending(ctx: Context, org: OrgId, destinationId: string): void {
  const pending = and(
    eq(deliveries.orgId, org),
    eq(deliveries.destinationId, destinationId),
    eq(deliveries.status, "pending"),
  );
  if ((ctx.db.select({ n: count() }).from(deliveries).where(pending).get()?.n ?? 0) >= maxPending)
    throw conflict(`This destination has ${maxPending} unfinished deliveries. Wait until some have ended.`);
}
