import type { Context, OrgId } from "../context.ts";
import type { Lease } from "../jobs/queue.ts";
import { createRunner } from "../jobs/runner.ts";
import { createDigests } from "./digests.ts";
import type { EventData } from "./events.ts";
import { createDeliveryJob, maxRetryAfterMs, tryBackoffMs } from "./job.ts";

/** The maximum number of concurrent deliveries: in total, per organization, and per host. */
const limits = { concurrency: 20, org: 5, host: 4 };

type NotifierOptions = {
  /** What happened in an organization between two times, in epoch ms. */
  digestOf: (org: OrgId, from: number, until: number) => EventData<"digest.weekly">;
  timeoutMs?: number | undefined;
  leaseMs?: number | undefined;
  /** Called after the end of an attempt is stored. */
  onAttempt?: (lease: Lease) => void;
};

/** Sends the notifications of the outbox, with its own runner. */
export function createNotifier(ctx: Context, { digestOf, timeoutMs, leaseMs, onAttempt }: NotifierOptions) {
  const runner = createRunner(ctx, {
    pool: "deliveries",
    handlers: { delivery: createDeliveryJob(ctx, { timeoutMs }) },
    concurrency: () => limits.concurrency,
    limits: { org: () => ({ atOnce: limits.org, aDay: null }), host: limits.host },
    backoffMs: tryBackoffMs,
    maxRetryAfterMs,
    leaseMs,
    onAttempt,
  });
  const digests = createDigests(ctx, digestOf);
  return {
    runner,
    digests,
    async start(): Promise<void> {
      await runner.start();
      digests.start();
    },
    async stop(drainMs: number): Promise<void> {
      await Promise.all([runner.stop(drainMs), digests.stop()]);
    },
  };
}
