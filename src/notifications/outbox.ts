import { and, eq, isNull, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { deliveries, destinations, notifications } from "../db/tables/notifications.ts";
import { enqueue } from "../jobs/queue.ts";
import type { EventData, EventType } from "./events.ts";

/** Tries per delivery. */
const maxTries = 10;

type DestinationRow = typeof destinations.$inferSelect;

const activeDestinations = statement((db) =>
  db
    .select()
    .from(destinations)
    .where(and(eq(destinations.orgId, sql.placeholder("org")), isNull(destinations.disabledAt))),
);

/** Adds the delivery of a notification to a destination, with its job. Returns its ID. */
export function enqueueDelivery(
  ctx: Context,
  tx: Tx,
  { id: destinationId, orgId, url }: DestinationRow,
  notificationId: string,
): string {
  const createdAt = ctx.now();
  const id = ctx.newId(createdAt);
  tx.insert(deliveries).values({ id, orgId, notificationId, destinationId, status: "pending", createdAt }).run();
  const host = url === null ? "" : new URL(url).host;
  enqueue(ctx, tx, { pool: "deliveries", kind: "delivery", subject: id, orgId, host, maxAttempts: maxTries });
  ctx.signals.deliveryQueued.emit();
  return id;
}

/** Whether a destination of the organization wants an event. Check this before computing an expensive event. */
export const wantsEvent = (ctx: Context, org: string, type: EventType): boolean =>
  listSubscribers(ctx, org, type).length > 0;

/** When the first destination that wants an event was added, in epoch ms; null: none wants it. */
export function eventWantedSince(ctx: Context, org: string, type: EventType): number | null {
  const subscribers = listSubscribers(ctx, org, type);
  return subscribers.length === 0 ? null : Math.min(...subscribers.map(({ createdAt }) => createdAt));
}

/** Sends an event to all destinations that want it. With a `onceKey`, only the first event with that key is sent. */
export function emitEvent<T extends EventType>(
  ctx: Context,
  tx: Tx,
  org: string,
  type: T,
  makeData: () => EventData<T>,
  onceKey: string | null = null,
) {
  const subscribers = listSubscribers(ctx, org, type);
  if (subscribers.length === 0) return;
  const id = storeNotification(ctx, tx, org, type, makeData(), onceKey);
  if (id) for (const each of subscribers) enqueueDelivery(ctx, tx, each, id);
}

/** Sends an event to one destination, even if the destination isn't subscribed to it. Returns the ID of the delivery. */
export function sendEvent<T extends EventType>(
  ctx: Context,
  tx: Tx,
  destination: DestinationRow,
  type: T,
  data: EventData<T>,
): string {
  // Without a `onceKey`, the notification is always stored.
  const notificationId = storeNotification(ctx, tx, destination.orgId, type, data, null) as string;
  return enqueueDelivery(ctx, tx, destination, notificationId);
}

const listSubscribers = (ctx: Context, org: string, type: EventType) =>
  activeDestinations(ctx.db)
    .all({ org })
    .filter(({ events }) => events.includes(type));

/** Stores a notification. Returns its ID; undefined: a notification with the same `onceKey` is already stored. */
function storeNotification<T extends EventType>(
  ctx: Context,
  tx: Tx,
  orgId: string,
  type: T,
  data: EventData<T>,
  onceKey: string | null,
) {
  const createdAt = ctx.now();
  const id = ctx.newId(createdAt);
  const promptId = "prompt" in data ? data.prompt.id : null;
  const row = { id, orgId, type, onceKey, promptId, data: data as Record<string, unknown>, createdAt };
  return tx.insert(notifications).values(row).onConflictDoNothing().returning({ id: notifications.id }).get()?.id;
}
