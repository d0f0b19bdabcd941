import { and, asc, count, desc, eq, inArray } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { jobs } from "../db/tables/jobs.ts";
import { deliveries, deliveryTries, notifications } from "../db/tables/notifications.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toIso } from "../schema.ts";
import type { Destinations } from "./destinations.ts";
import { type EventType, payloadOf } from "./events.ts";
import type { Outbox } from "./outbox.ts";
import type { Delivery, DeliveryDetail } from "./schema.ts";

/** Unfinished tests and replays of a destination. */
const maxPending = 100;

type Parts = { destinations: Pick<Destinations, "getRow">; outbox: Pick<Outbox, "send" | "resend"> };
type Filter = { status?: Delivery["status"] };

export type Deliveries = ReturnType<typeof createDeliveries>;

/** The log of deliveries, and tests and replays. */
export function createDeliveries({ db }: Pick<Context, "db">, { destinations, outbox }: Parts) {
  const columns = {
    delivery: deliveries,
    notification: notifications,
    job: { availableAt: jobs.availableAt, state: jobs.state },
  };
  const select = () =>
    db
      .select(columns)
      .from(deliveries)
      .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
      .leftJoin(jobs, and(eq(jobs.kind, "delivery"), eq(jobs.subject, deliveries.id)));
  type Row = ReturnType<ReturnType<typeof select>["all"]>[number];
  type Try = typeof deliveryTries.$inferSelect;

  const triesOf = (org: OrgId, ids: string[]): Map<string, Try[]> =>
    Map.groupBy(
      db
        .select()
        .from(deliveryTries)
        .where(and(eq(deliveryTries.orgId, org), inArray(deliveryTries.deliveryId, ids)))
        .orderBy(asc(deliveryTries.attempt))
        .all(),
      ({ deliveryId }) => deliveryId,
    );

  function toDelivery({ delivery, notification, job }: Row, tries: Try[]): Delivery {
    const last = tries.at(-1);
    const { id, notificationId, status, failure, createdAt, completedAt } = delivery;
    const waits = job?.state === "queued" && job.availableAt > 0;
    return {
      ...{ id, notificationId, status, failure },
      type: notification.type as EventType,
      tries: tries.length,
      lastStatus: last?.status ?? null,
      lastMs: last?.ms ?? null,
      nextTryAt: waits ? toIso(job.availableAt) : null,
      createdAt: toIso(createdAt),
      completedAt: toIso(completedAt),
    };
  }

  function getRow(org: OrgId, destinationId: string, id: string): Row {
    const { id: destination } = destinations.getRow(org, destinationId);
    const [row] = select()
      .where(
        and(eq(deliveries.orgId, org), eq(deliveries.destinationId, destination), eq(deliveries.id, id.toLowerCase())),
      )
      .all();
    if (!row) throw notFound(`No delivery of this destination has the ID ${id}.`);
    return row;
  }

  function getDelivery(org: OrgId, destinationId: string, id: string): DeliveryDetail {
    const row = getRow(org, destinationId, id);
    const tries = triesOf(org, [row.delivery.id]).get(row.delivery.id) ?? [];
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

  /** Throws conflict while many deliveries wait. */
  function checkPending(org: OrgId, destinationId: string): void {
    const pending = and(
      eq(deliveries.orgId, org),
      eq(deliveries.destinationId, destinationId),
      eq(deliveries.status, "pending"),
    );
    if ((db.select({ n: count() }).from(deliveries).where(pending).get()?.n ?? 0) >= maxPending)
      throw conflict(`This destination has ${maxPending} unfinished deliveries. Wait until some have ended.`);
  }

  return {
    getDelivery,

    /** Newest first. Throws not_found. */
    listDeliveries(org: OrgId, destinationId: string, { status }: Filter, { limit, offset }: Page): Paged<Delivery> {
      const { id } = destinations.getRow(org, destinationId);
      const where = and(
        eq(deliveries.orgId, org),
        eq(deliveries.destinationId, id),
        status && eq(deliveries.status, status),
      );
      const rows = select().where(where).orderBy(desc(deliveries.id)).limit(limit).offset(offset).all();
      const tries = triesOf(
        org,
        rows.map(({ delivery }) => delivery.id),
      );
      return {
        items: rows.map((row) => toDelivery(row, tries.get(row.delivery.id) ?? [])),
        total: db.select({ n: count() }).from(deliveries).where(where).get()?.n ?? 0,
      };
    },

    /** Sends a test event. Throws not_found, and conflict for a disabled destination. */
    testDestination(org: OrgId, id: string): DeliveryDetail {
      const row = destinations.getRow(org, id);
      if (row.disabledAt !== null) throw conflict("The destination is disabled. Enable it first.");
      checkPending(org, row.id);
      const data = { destination: { id: row.id, name: row.name } };
      const delivery = transaction(db, (tx) => outbox.send(tx, row, "destination.test", data));
      return getDelivery(org, row.id, delivery);
    },

    /** Sends the notification of a delivery again, with the same webhook-id. Throws not_found, and conflict for a disabled destination or an unfinished delivery. */
    replayDelivery(org: OrgId, destinationId: string, id: string): DeliveryDetail {
      const row = destinations.getRow(org, destinationId);
      const { delivery } = getRow(org, destinationId, id);
      if (row.disabledAt !== null) throw conflict("The destination is disabled. Enable it first.");
      if (delivery.status === "pending") throw conflict("The delivery has not ended yet.");
      checkPending(org, row.id);
      const again = transaction(db, (tx) => outbox.resend(tx, row, delivery.notificationId));
      return getDelivery(org, row.id, again);
    },
  };
}
