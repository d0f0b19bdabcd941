import { and, eq, sql } from "drizzle-orm";
import { mailDestinationDisabled } from "../auth/mail.ts";
import { listOwnerEmails } from "../auth/members.ts";
import { getOrg } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import {
  deliveries,
  type deliveryFailures,
  deliveryTries,
  destinations,
  notifications,
} from "../db/tables/notifications.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { mentionsNothingDeleted } from "./deleted.ts";
import { type DestinationRow, disableDestination } from "./destinations.ts";
import { cut } from "./events.ts";
import { sendNotification, settingsPath, type TryResult } from "./send.ts";

const hourMs = 3600_000;
const minuteMs = 60_000;

/** The delays after the first to the ninth failed try, as Standard Webhooks suggests. They add up to about 75 hours. */
const delaysMs = [
  5_000,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
];
export const maxRetryAfterMs = 24 * hourMs;

/** The delay before the next try, by the number of failures (at least 1). Up to 10 % are added, so that receivers don't get all retries at once. */
export const tryBackoffMs = (failures: number): number =>
  (delaysMs[failures - 1] ?? 24 * hourMs) * (1 + Math.random() / 10);

/** Characters of a response body that are kept. */
const maxBody = 1_000;

/** Failures after which a delivery isn't tried again. */
const finalFailures = ["gone", "disabled", "deleted"] as const;

const isLastTry = ({ spent, maxAttempts }: Lease): boolean => spent + 1 >= maxAttempts;

/** Creates the job that sends a delivery, with one try per attempt. `timeoutMs`: how long a response may take. */
export const createDeliveryJob = (ctx: Context, { timeoutMs }: { timeoutMs?: number | undefined }): JobHandler => ({
  onStart() {},
  run: (lease, signal) => tryDelivery(ctx, lease, { signal, timeoutMs }),
  onRequeue() {},
  onFailure(tx, lease, { detail }) {
    // The detail of an error that `finalFailure` throws is the failure.
    const failure = finalFailures.find((each) => each === detail);
    const otherFailure = isLastTry(lease) ? "exhausted" : "interrupted";
    endDelivery(ctx, tx, lease.subject, failure ?? otherFailure);
  },
  costOf: () => null,
});

async function tryDelivery(
  ctx: Context,
  lease: Lease,
  limits: { signal: AbortSignal; timeoutMs?: number | undefined },
): Promise<(tx: Tx) => void> {
  const delivery = findDelivery(ctx, lease.subject);
  if (!delivery) throw finalFailure("deleted");
  const { destination, notification } = delivery;
  if (destination.disabledAt !== null) throw finalFailure("disabled");
  const startedAt = ctx.now();
  const result = await sendNotification(ctx, destination, notification, limits);
  limits.signal.throwIfAborted();
  const { status, error } = result;
  ctx.log.info(
    { delivery: lease.subject, destination: destination.id, attempt: lease.attempt, status, ms: result.ms },
    "delivery attempted",
  );
  if (result.ok)
    return (tx: Tx) => {
      storeTry(tx, destination.orgId, lease, startedAt, result);
      endDelivery(ctx, tx, lease.subject, null);
      if (destination.failingSince !== null)
        tx.update(destinations).set({ failingSince: null }).where(eq(destinations.id, destination.id)).run();
    };
  const disableReason = await ctx.commit((tx) => storeFailedTry(ctx, tx, lease, destination, startedAt, result));
  if (disableReason !== null) announceDisabled(ctx, destination, disableReason);
  if (disableReason === "gone") throw finalFailure("gone");
  const detail = status === null ? (error ?? "no response") : `status ${status}`;
  throw new JobFailure({ cause: "infrastructure", detail }, "attempt", result.retryAfterMs ?? 0);
}

type DisableReason = "gone" | "failing";

/** Stores a failed try, unless the lease was lost. Returns why this failure disabled the destination; null: it didn't. */
function storeFailedTry(
  ctx: Context,
  tx: Tx,
  lease: Lease,
  destination: DestinationRow,
  startedAt: number,
  result: TryResult,
): DisableReason | null {
  if (!isLeaseHeld(ctx, lease)) return null;
  storeTry(tx, destination.orgId, lease, startedAt, result);
  // The fault is this service's and not the receiver's, so the destination stays enabled.
  if (result.isUnreadable) return null;
  tx.update(destinations)
    .set({ failingSince: sql`coalesce(${destinations.failingSince}, ${startedAt})` })
    .where(eq(destinations.id, destination.id))
    .run();
  const reason = reasonToDisable(tx, lease, destination.id, result);
  if (reason !== null) disableDestination(ctx, tx, destination, reason);
  return reason;
}

/** What a delivery sends, and where. undefined: the delivery, or something that it is about, was deleted. */
const findDelivery = (ctx: Context, id: string) =>
  ctx.db
    .select({ notification: notifications, destination: destinations })
    .from(deliveries)
    .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
    .innerJoin(destinations, eq(destinations.id, deliveries.destinationId))
    .where(and(eq(deliveries.id, id), mentionsNothingDeleted))
    .get();

const endDelivery = (ctx: Context, tx: Tx, id: string, failure: (typeof deliveryFailures)[number] | null) =>
  tx
    .update(deliveries)
    .set({
      status: failure === null ? "delivered" : "failed",
      failure,
      completedAt: endedAt(ctx.now(), deliveries.createdAt),
    })
    .where(and(eq(deliveries.id, id), eq(deliveries.status, "pending")))
    .run();

function storeTry(
  tx: Tx,
  orgId: string,
  { subject, attempt }: Lease,
  startedAt: number,
  { ms, status, body, error }: TryResult,
): void {
  const shortBody = body === null ? null : cut(body, maxBody);
  tx.insert(deliveryTries)
    .values({ orgId, deliveryId: subject, attempt, at: startedAt, ms, status, body: shortBody, error })
    .onConflictDoNothing()
    .run();
}

/** Why a destination must be disabled after a failed try; null if it need not. */
function reasonToDisable(tx: Tx, lease: Lease, destinationId: string, { status }: TryResult): DisableReason | null {
  if (status === 410) return "gone";
  if (!isLastTry(lease)) return null;
  const destination = tx
    .select({ failingSince: destinations.failingSince })
    .from(destinations)
    .where(eq(destinations.id, destinationId))
    .get();
  const firstTry = tx
    .select({ at: sql<number | null>`min(${deliveryTries.at})` })
    .from(deliveryTries)
    .where(eq(deliveryTries.deliveryId, lease.subject))
    .get();
  if (!destination?.failingSince || !firstTry?.at) return null;
  // Another delivery may have succeeded since the first try.
  return destination.failingSince <= firstTry.at ? "failing" : null;
}

const finalFailure = (failure: (typeof finalFailures)[number]) =>
  new JobFailure({ cause: "infrastructure", detail: failure }, "never");

const disableReasonTexts: Record<DisableReason, string> = {
  gone: "it returned status 410, which means that it is gone.",
  failing: "all tries of a delivery failed over three days, and no other delivery succeeded in that time.",
};

/** Tells the owners that a destination was disabled because it no longer exists or keeps failing. */
function announceDisabled(ctx: Context, { id, name, orgId }: DestinationRow, reason: DisableReason): void {
  ctx.log.warn({ destination: id, reason }, "destination disabled");
  const org = orgId as OrgId;
  const owners = listOwnerEmails(ctx, org);
  if (owners.length === 0) return;
  void mailDestinationDisabled(ctx, owners, {
    orgName: getOrg(ctx, org).name,
    name,
    reason: disableReasonTexts[reason],
    path: `${settingsPath}/${id}`,
  });
}
