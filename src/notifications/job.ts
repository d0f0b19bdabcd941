import { and, eq, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import {
  deliveries,
  type deliveryFailures,
  deliveryTries,
  destinations,
  notifications,
} from "../db/tables/notifications.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import type { DestinationRow, Destinations } from "./destinations.ts";
import { cut } from "./events.ts";
import type { Send, Sent } from "./send.ts";

const hourMs = 3600_000;
const minuteMs = 60_000;

/** Delays before the second to the tenth try, as Standard Webhooks suggests: about 75 hours in all. */
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

/** Delay before the next try, by the number of failures, with up to 10 % on top so that receivers don't get all retries at once. */
export const tryBackoffMs = (failures: number): number =>
  (delaysMs[Math.min(failures, delaysMs.length) - 1] ?? 0) * (1 + Math.random() / 10);

/** Characters of a response body to keep. */
const maxBody = 1_000;

type Parts = {
  destinations: Pick<Destinations, "disable">;
  commit: Commit;
  send: Send;
  /** Called after a destination was disabled because it is gone or keeps failing. */
  onDisabled: (org: OrgId, destination: DestinationRow, reason: "gone" | "failing") => void;
};

/** The job of a delivery: one try per attempt. */
export function createDeliveryJob(ctx: Context, { destinations: ofOrg, commit, send, onDisabled }: Parts): JobHandler {
  const { db, now, log } = ctx;
  const find = (id: string) =>
    db
      .select({ delivery: deliveries, notification: notifications, destination: destinations })
      .from(deliveries)
      .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
      .innerJoin(destinations, eq(destinations.id, deliveries.destinationId))
      .where(eq(deliveries.id, id))
      .get();

  const end = (tx: Tx, id: string, failure: (typeof deliveryFailures)[number] | null) =>
    tx
      .update(deliveries)
      .set({ status: failure === null ? "delivered" : "failed", failure, completedAt: now() })
      .where(and(eq(deliveries.id, id), eq(deliveries.status, "pending")))
      .run();

  function note(
    tx: Tx,
    orgId: string,
    { subject, attempt }: Lease,
    at: number,
    { ms, status, body, error }: Sent,
  ): void {
    const tried = { at, ms, status, body: body === null ? null : cut(body, maxBody), error };
    tx.insert(deliveryTries)
      .values({ orgId, deliveryId: subject, attempt, ...tried })
      .onConflictDoNothing()
      .run();
  }

  /** Why a destination must be disabled after a failed try; null if it need not. */
  function reasonToDisable(tx: Tx, lease: Lease, destinationId: string, { status }: Sent): "gone" | "failing" | null {
    if (status === 410) return "gone";
    if (lease.spent + 1 < lease.maxAttempts) return null;
    const { since } =
      tx
        .select({ since: destinations.failingSince })
        .from(destinations)
        .where(eq(destinations.id, destinationId))
        .get() ?? {};
    const first = tx
      .select({ at: sql<number | null>`min(${deliveryTries.at})` })
      .from(deliveryTries)
      .where(eq(deliveryTries.deliveryId, lease.subject))
      .get();
    // Another delivery may have succeeded in the meantime.
    return since != null && since <= (first?.at ?? 0) ? "failing" : null;
  }

  const never = (failure: (typeof deliveryFailures)[number]) =>
    new JobFailure({ cause: "infrastructure", detail: failure }, "never");

  return {
    started() {},

    async run(lease, signal) {
      const found = find(lease.subject);
      // Deleted while it was queued.
      if (!found) throw never("disabled");
      const { destination, notification } = found;
      if (destination.disabledAt !== null) throw never("disabled");
      const at = now();
      const sent = await send(destination, notification, signal);
      signal.throwIfAborted();
      const { status, error } = sent;
      log.info(
        { delivery: lease.subject, destination: destination.id, attempt: lease.attempt, status, ms: sent.ms },
        "delivery",
      );
      if (sent.ok)
        return (tx) => {
          note(tx, destination.orgId, lease, at, sent);
          end(tx, lease.subject, null);
          if (destination.failingSince !== null)
            tx.update(destinations).set({ failingSince: null }).where(eq(destinations.id, destination.id)).run();
        };
      const reason = await commit((tx) => {
        if (!isLeaseHeld(ctx, lease)) return null;
        note(tx, destination.orgId, lease, at, sent);
        tx.update(destinations)
          .set({ failingSince: sql`coalesce(${destinations.failingSince}, ${at})` })
          .where(eq(destinations.id, destination.id))
          .run();
        const why = reasonToDisable(tx, lease, destination.id, sent);
        if (why) ofOrg.disable(tx, destination, why);
        return why;
      });
      if (reason) onDisabled(destination.orgId as OrgId, destination, reason);
      if (reason === "gone") throw never("gone");
      const detail = status === null ? (error ?? "no response") : `status ${status}`;
      throw new JobFailure({ cause: "infrastructure", detail }, "attempt", sent.retryAfterMs ?? 0);
    },

    returned() {},

    failed(tx, lease, { detail }) {
      const isKnown = detail === "gone" || detail === "disabled";
      end(tx, lease.subject, isKnown ? detail : lease.spent + 1 >= lease.maxAttempts ? "exhausted" : "interrupted");
    },

    costOf: () => null,
  };
}
