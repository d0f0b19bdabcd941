import { and, eq, isNull, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { prepared } from "../db/prepared.ts";
import { deliveries, destinations, notifications } from "../db/tables/notifications.ts";
import { enqueue } from "../jobs/queue.ts";
import type { EventData, EventType } from "./events.ts";

/** Tries per delivery. */
const maxTries = 10;

type DestinationRow = typeof destinations.$inferSelect;

export type Outbox = ReturnType<typeof createOutbox>;

/** Writes events to the outbox, in the transaction of what happened, with a job for each destination that wants them. */
export function createOutbox(ctx: Context) {
  const { db, now, newId, signals } = ctx;
  const activeOf = prepared(
    db
      .select()
      .from(destinations)
      .where(and(eq(destinations.orgId, sql.placeholder("org")), isNull(destinations.disabledAt))),
  );
  const listWanting = (org: string, type: EventType) =>
    activeOf.all({ org }).filter(({ events }) => events.includes(type));

  function enqueueDelivery(tx: Tx, { id: destinationId, orgId, url }: DestinationRow, notificationId: string): string {
    const createdAt = now();
    const id = newId(createdAt);
    tx.insert(deliveries).values({ id, orgId, notificationId, destinationId, status: "pending", createdAt }).run();
    const host = url === null ? "" : new URL(url).host;
    enqueue(ctx, tx, { pool: "deliveries", kind: "delivery", subject: id, orgId, host, maxAttempts: maxTries });
    signals.deliveryQueued.emit();
    return id;
  }

  function store<T extends EventType>(tx: Tx, orgId: string, type: T, data: EventData<T>, onceKey: string | null) {
    const createdAt = now();
    const row = { id: newId(createdAt), orgId, type, onceKey, data: data as Record<string, unknown>, createdAt };
    return tx.insert(notifications).values(row).onConflictDoNothing().returning({ id: notifications.id }).get()?.id;
  }

  return {
    /** Whether a destination of the organization wants an event. Ask before computing an expensive one. */
    wants: (org: string, type: EventType): boolean => listWanting(org, type).length > 0,

    /** When the first destination that wants an event was added, epoch ms; null: none wants it. */
    wantedSince(org: string, type: EventType): number | null {
      const wanting = listWanting(org, type);
      return wanting.length === 0 ? null : Math.min(...wanting.map(({ createdAt }) => createdAt));
    },

    /** Notifies the destinations that want the event. With a `onceKey`, only the first event with that key is sent. */
    emit<T extends EventType>(
      tx: Tx,
      org: string,
      type: T,
      makeData: () => EventData<T>,
      onceKey: string | null = null,
    ) {
      const wanting = listWanting(org, type);
      if (wanting.length === 0) return;
      const id = store(tx, org, type, makeData(), onceKey);
      if (id) for (const each of wanting) enqueueDelivery(tx, each, id);
    },

    /** Sends an event to one destination, even if it is not subscribed to it. Returns the ID of the delivery. */
    send<T extends EventType>(tx: Tx, destination: DestinationRow, type: T, data: EventData<T>): string {
      return enqueueDelivery(tx, destination, store(tx, destination.orgId, type, data, null) as string);
    },

    /** Sends a stored notification to a destination again. Returns the ID of the delivery. */
    resend: enqueueDelivery,
  };
}
