import { and, eq, isNull, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { destinations, notifications } from "../db/tables/notifications.ts";
import { orgs } from "../db/tables/orgs.ts";
import { createPoll } from "../poll.ts";
import type { EventData } from "./events.ts";
import { emitEvent, eventWantedSince } from "./outbox.ts";

const pollMs = 5 * 60_000;
const dayMs = 24 * 3600_000;

/** What happened in an organization between two times, in epoch ms. */
type DigestOf = (org: OrgId, from: number, until: number) => EventData<"digest.weekly">;

/**
 * Sends a weekly digest to each organization that wants it, once, on Mondays at 8:00 in its time zone. After downtime, the digest is late but covers
 * the same week. If several weeks were missed, only the last one gets a digest.
 */
export function createDigests(ctx: Context, digestOf: DigestOf) {
  const { db, now, log, commit } = ctx;
  /** Organizations that want the digest. */
  const listOrgs = () =>
    db
      .selectDistinct({ id: orgs.id, timeZone: orgs.timeZone })
      .from(destinations)
      .innerJoin(orgs, eq(orgs.id, destinations.orgId))
      .where(
        and(
          isNull(destinations.disabledAt),
          sql`exists (select 1 from json_each(${destinations.events}) where value = 'digest.weekly')`,
        ),
      )
      .all();

  /** The time of the last Monday at 8:00, in epoch ms. */
  function lastDigestTime(timeZone: string): number | null {
    const schedule = { id: "", frequency: "0 8 * * 1", timeZone };
    // Eight days contain one or two Mondays. The later one may be today, but after now.
    const first = nextTime(schedule, now() - 8 * dayMs);
    const second = first === null ? null : nextTime(schedule, first);
    return [second, first].find((time) => time !== null && time <= now()) ?? null;
  }

  async function tick(): Promise<void> {
    for (const { id, timeZone } of listOrgs()) {
      const until = lastDigestTime(timeZone);
      const since = eventWantedSince(ctx, id, "digest.weekly");
      if (until === null || since === null || until < since) continue;
      const onceKey = `digest ${new Date(until).toISOString().slice(0, 10)}`;
      const whereSent = and(eq(notifications.orgId, id), eq(notifications.onceKey, onceKey));
      // `emitEvent` would also detect this, but only after the digest was computed.
      if (db.select({ id: notifications.id }).from(notifications).where(whereSent).get()) continue;
      const data = digestOf(id as OrgId, until - 7 * dayMs, until);
      await commit((tx) => emitEvent(ctx, tx, id, "digest.weekly", () => data, onceKey));
    }
  }

  const poll = createPoll({
    check: () => tick().then(() => pollMs),
    onError(error) {
      ctx.disk.onError(error);
      log.error({ err: error }, "could not send digests");
    },
    retryMs: pollMs,
  });
  return { tick, start: poll.start, stop: poll.stop };
}
