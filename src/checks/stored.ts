import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { max, min } from "drizzle-orm";
import { findBackupWarning } from "../backups/backups.ts";
import { type Context, perContext } from "../context.ts";
import { lastBackupAt } from "../db/backup-record.ts";
import { readMigrations } from "../db/open.ts";
import { clock } from "../db/tables/clock.ts";
import { orgs } from "../db/tables/orgs.ts";
import { runs } from "../db/tables/runs.ts";
import { count } from "../grading/text.ts";
import { countUnreadableSecrets } from "../notifications/secrets.ts";
import { toIso } from "../schema.ts";
import { type CheckInput, type Finding, notApplicable, ok, problemFound } from "./finding.ts";

const minuteMs = 60_000;
const dayMs = 24 * 3600_000;
const noDatabase = () => notApplicable("there is no database that can be read");

/** Whether EVALD_SECRET_KEY decrypts what is stored. */
export function checkSecretKey({ ctx }: CheckInput): Finding {
  if (ctx === null) return noDatabase();
  const { modelKeys, destinations } = countUnreadableSecrets(ctx);
  const isSet = ctx.config.secretKey !== null;
  if (modelKeys + destinations > 0)
    return problemFound(
      isSet ? "secret_key_changed" : "secret_key_missing",
      `${count(modelKeys, "model key")} and ${count(destinations, "destination")} can't be decrypted`,
    );
  return isSet ? ok("everything stored can be decrypted") : notApplicable("nothing is stored that needs it");
}

/** Whether this version knows the time zones of all organizations. */
export function checkTimeZones({ ctx }: CheckInput): Finding[] {
  if (ctx === null) return [noDatabase()];
  const zones = ctx.db.selectDistinct({ zone: orgs.timeZone }).from(orgs).orderBy(orgs.timeZone).all();
  if (zones.length === 0) return [notApplicable("there is no organization")];
  const unknownZones = zones.filter(({ zone }) => !isKnownZone(zone));
  if (unknownZones.length === 0) return [ok(zones.map(({ zone }) => zone).join(", "))];
  return unknownZones.map(({ zone }) =>
    problemFound("time_zone_unknown", `an organization has the time zone ${zone}`, zone),
  );
}

function isKnownZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

/** Age from which the last backup is late. */
const lateMs = 8 * dayMs;

/**
 * Whether scheduled backups succeed. Without scheduled backups: whether the database was backed up in the last days, unless it is only a few days
 * old.
 */
export function checkBackup({ config, ctx, now }: CheckInput): Finding {
  if (ctx === null) return noDatabase();
  const path = resolve(config.dataDir);
  const warning = findBackupWarning(ctx);
  if (warning !== null) return problemFound("backup_failing", warning, path);
  if (config.backups !== null) return ok("scheduled backups are in time", path);
  if (existsSync(join(path, ".evald.db-litestream"))) return notApplicable("Litestream copies the database");
  const backedUpAt = lastBackupAt(ctx.db);
  const isLate = now() - backedUpAt > lateMs;
  if (backedUpAt > 0 && isLate) return problemFound("backup_late", `it was made on ${dayOf(backedUpAt)}`, path);
  if (backedUpAt > 0) return ok(`made on ${dayOf(backedUpAt)}`, path);
  const { createdAt } = ctx.db
    .select({ createdAt: min(orgs.createdAt) })
    .from(orgs)
    .get() ?? { createdAt: null };
  if (createdAt === null) return notApplicable("nothing is stored yet");
  if (now() - createdAt <= lateMs) return ok("the database is only a few days old", path);
  return problemFound("backup_missing", `the database has existed since ${dayOf(createdAt)}`, path);
}

const dayOf = (at: number): string => toIso(at).slice(0, 10);

/** Smaller differences between clocks are ignored. */
const toleranceMs = 5 * minuteMs;

/**
 * How many milliseconds the clock was ahead of the monotonic clock at the start. `differsSince`: since when the difference has changed by more than
 * the tolerance, by the monotonic clock; null: it hasn't.
 */
const clockReferences = perContext((ctx: Context) => ({
  offsetMs: ctx.now() - ctx.monotonicNow(),
  differsSince: null as number | null,
}));

/** By how many milliseconds the clock was set since the service started. A clock that stays set for a day becomes the new reference. */
function jumpOf(ctx: Context): number {
  const reference = clockReferences(ctx);
  const offsetMs = ctx.now() - ctx.monotonicNow();
  const jumpMs = offsetMs - reference.offsetMs;
  if (Math.abs(jumpMs) <= toleranceMs) {
    reference.differsSince = null;
    return jumpMs;
  }
  reference.differsSince ??= ctx.monotonicNow();
  if (ctx.monotonicNow() - reference.differsSince > dayMs) Object.assign(reference, { offsetMs, differsSince: null });
  return jumpMs;
}

/** Whether the clock is right: it isn't before this version and stored data, agrees with other servers, and hasn't jumped. */
export function checkClock({ ctx, now, peerClocks }: CheckInput): Finding {
  const nowMs = now();
  const builtAt = Math.max(...readMigrations().map(({ folderMillis }) => folderMillis));
  const storedAt = ctx === null ? 0 : newestTime(ctx);
  if (nowMs < builtAt - dayMs)
    return problemFound("clock_behind", `it says ${toIso(nowMs)}, but this version was made on ${dayOf(builtAt)}`);
  if (nowMs < storedAt - minuteMs)
    return problemFound("clock_behind", `it says ${toIso(nowMs)}, but evald stored something at ${toIso(storedAt)}`);
  for (const [host, aheadMs] of peerClocks)
    if (Math.abs(aheadMs) > toleranceMs)
      return problemFound("clock_differs", `it says ${toIso(nowMs)}, ${host} ${toIso(nowMs + aheadMs)}`);
  const jumpMs = ctx === null ? 0 : jumpOf(ctx);
  if (Math.abs(jumpMs) > toleranceMs)
    return problemFound(
      "clock_jumped",
      `${jumpMs > 0 ? "forward" : "back"} by ${Math.round(Math.abs(jumpMs) / minuteMs)} minutes`,
    );
  return ok(toIso(nowMs));
}

/** The newest time that is stored, epoch milliseconds; 0: none. */
function newestTime({ db }: Context): number {
  const run = db
    .select({ at: max(runs.createdAt) })
    .from(runs)
    .get();
  const proof = db.select({ at: clock.provenAt }).from(clock).get();
  return Math.max(run?.at ?? 0, proof?.at ?? 0);
}
