import { mailDisabled, mailNotification } from "../auth/mail.ts";
import { listMembers } from "../auth/members.ts";
import { getOrg } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Lease } from "../jobs/queue.ts";
import { createRunner } from "../jobs/runner.ts";
import { createDeliveries } from "./deliveries.ts";
import { createDestinations, type DestinationRow } from "./destinations.ts";
import { createDigests } from "./digests.ts";
import type { EventData } from "./events.ts";
import { createDeliveryJob, maxRetryAfterMs, tryBackoffMs } from "./job.ts";
import { toText } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import { createSend } from "./send.ts";

/** Deliveries at once: in all, per organization, and per host. */
const limits = { concurrency: 20, org: 5, host: 4 };

type Parts = {
  outbox: Outbox;
  commit: Commit;
  userAgent: string;
  digestOf: (org: OrgId, from: number, until: number) => EventData<"digest.weekly">;
  timeoutMs?: number;
  leaseMs?: number;
  /** Called after the end of an attempt is stored. */
  onAttempt?: (lease: Lease) => void;
  onError: (error: unknown) => void;
};

const settingsPath = "/settings/notifications";
const reasons = {
  gone: "it returned status 410, which means that it is gone.",
  failing: "all tries of a delivery failed over three days, and no other delivery succeeded in that time.",
};

/** Sends what is in the outbox, with a runner of its own. */
export function createNotifier(ctx: Context, { outbox, commit, onError, ...options }: Parts) {
  const { log } = ctx;
  const emailsOf = (org: OrgId) => listMembers(ctx, org).map(({ email }) => email.toLowerCase());
  const ownersOf = (org: OrgId) =>
    listMembers(ctx, org)
      .filter(({ role }) => role === "owner")
      .map(({ email }) => email);
  const destinations = createDestinations(ctx, { emailsOf });
  const deliveries = createDeliveries(ctx, { destinations, outbox });
  const send = createSend(ctx, {
    ...{ destinations, emailsOf, ownersOf, userAgent: options.userAgent },
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    mail: (org, to, message) =>
      mailNotification(ctx, to, message.title, toText(message), getOrg(ctx, org).name, settingsPath),
  });
  const onDisabled = (org: OrgId, { id, name }: DestinationRow, reason: "gone" | "failing") => {
    log.warn({ destination: id, reason }, "destination disabled");
    const owners = ownersOf(org);
    if (owners.length > 0)
      void mailDisabled(ctx, owners, getOrg(ctx, org).name, name, reasons[reason], `${settingsPath}/${id}`);
  };
  const runner = createRunner(ctx, {
    pool: "deliveries",
    onAttempt: options.onAttempt,
    leaseMs: options.leaseMs,
    handlers: { delivery: createDeliveryJob(ctx, { destinations, commit, send, onDisabled }) },
    concurrency: () => limits.concurrency,
    limits: { org: () => ({ atOnce: limits.org, aDay: null }), host: limits.host },
    backoffMs: tryBackoffMs,
    maxRetryAfterMs,
  });
  const digests = createDigests(ctx, { outbox, commit, digestOf: options.digestOf, onError });
  return {
    ...{ destinations, deliveries, runner, digests },
    async start(): Promise<void> {
      await runner.start();
      digests.start();
    },
    async stop(drainMs: number): Promise<void> {
      await Promise.all([runner.stop(drainMs), digests.stop()]);
    },
  };
}
