import { resolve } from "node:path";
import { frequencyProblem } from "../cron.ts";
import { ConfigError } from "../errors.ts";
import { type SettingValues, setting, throwExpected } from "./setting.ts";

/**
 * A bucket of an S3-compatible store, and how to reach it. `prefix`: empty, or ends in a slash. `endpoint`: null for the endpoint of AWS in `region`.
 */
export type StoreTarget = {
  kind: "store";
  bucket: string;
  prefix: string;
  endpoint: string | null;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | null;
};

/** Where backups are kept. `path` is absolute. */
export type BackupTarget = { kind: "directory"; path: string } | StoreTarget;

type Env = Record<string, string | undefined>;

/** The variables of the store. Other clients of S3 read them as well. */
export const storeVariables = {
  accessKeyId: "AWS_ACCESS_KEY_ID",
  secretAccessKey: "AWS_SECRET_ACCESS_KEY",
  sessionToken: "AWS_SESSION_TOKEN",
} as const;

/** For example `s3://bucket/a/prefix/`. The slashes around the prefix don't belong to it. */
const storeUrl = /^s3:\/\/(?<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/+(?<prefix>.*?))?\/*$/;

/** Whether a place is in a store rather than on this machine. */
export const isStoreUrl = (place: string): boolean => /^s3:/i.test(place);

/** The URL of a place without its credentials, for people. `name`: the name of a file in the place. */
export function locationOf(target: BackupTarget, name = ""): string {
  if (target.kind === "store") return `s3://${target.bucket}/${target.prefix}${name}`;
  return name === "" ? target.path : `${target.path}/${name}`;
}

/**
 * Turns a path into a directory, and `s3://bucket/prefix` into a store that the AWS variables describe. Throws ConfigError that names a missing
 * variable.
 */
export function toBackupTarget(place: string, env: Env): BackupTarget {
  if (!isStoreUrl(place)) return { kind: "directory", path: resolve(place) };
  const { bucket = "", prefix = "" } = storeUrl.exec(place)?.groups ?? {};
  if (bucket === "") throw new ConfigError(`${JSON.stringify(place)} must be a URL such as s3://bucket/prefix.`);
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || null;
  if (endpoint !== null && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ""))
    throw new ConfigError(`Invalid AWS_ENDPOINT_URL ${JSON.stringify(endpoint)}: must be an http or https URL.`);
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey)
    throw new ConfigError(`${place} needs ${storeVariables.accessKeyId} and ${storeVariables.secretAccessKey}.`);
  return {
    kind: "store",
    bucket,
    prefix: prefix === "" ? "" : `${prefix}/`,
    endpoint,
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1",
    accessKeyId,
    secretAccessKey,
    sessionToken: env.AWS_SESSION_TOKEN || null,
  };
}

/** Turns a time of day into a cron expression. Returns a cron expression unchanged. Throws ConfigError. */
function parseSchedule(value: string): string {
  const cron = value.trim();
  const [, hour, minute] = /^(\d|[01]\d|2[0-3]):([0-5]\d)$/.exec(cron) ?? [];
  // Checking a cron expression loads time zones, which takes 8 ms. The default must not cost that at every start.
  if (hour !== undefined) return `${Number(minute)} ${Number(hour)} * * *`;
  // The time of a preset such as `daily` depends on the ID of a prompt, so presets aren't allowed here.
  const isPreset = /^[a-z]+$/.test(cron);
  if (isPreset || frequencyProblem(cron) !== null)
    return throwExpected("a time of day such as 03:00, or a five-field cron expression in UTC such as 0 */6 * * *");
  return cron;
}

const parseCount = (min: number) => (value: string) =>
  /^\d{1,3}$/.test(value) && Number(value) >= min ? Number(value) : throwExpected(`a whole number from ${min} to 999`);

/** Settings of scheduled backups, in the order of the documentation. */
export const backupSettings = {
  /** Empty: no scheduled backups. */
  to: setting(
    "EVALD_BACKUP_TO",
    "",
    "Where scheduled backups are kept: a directory, or s3://bucket/prefix with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL; default: no scheduled backups",
    (value) =>
      isStoreUrl(value) && !storeUrl.test(value)
        ? throwExpected("a directory, or a URL such as s3://bucket/prefix")
        : value.trim(),
  ),
  /** Five cron fields, in UTC. */
  schedule: setting(
    "EVALD_BACKUP_SCHEDULE",
    "03:00",
    "When to back up, in UTC: a time of day, or a five-field cron expression such as 0 */6 * * *",
    parseSchedule,
  ),
  keepDaily: setting(
    "EVALD_BACKUP_KEEP_DAILY",
    "7",
    "Days of which the newest scheduled backup is kept",
    parseCount(1),
  ),
  keepWeekly: setting(
    "EVALD_BACKUP_KEEP_WEEKLY",
    "4",
    "Weeks of which the newest scheduled backup is kept, in addition",
    parseCount(0),
  ),
};

/** The settings of scheduled backups; null: there are none. Throws ConfigError for a store without its variables. */
export function toBackupSettings({ to, ...values }: SettingValues<typeof backupSettings>, env: Env) {
  if (to === "") return null;
  return { to: toBackupTarget(to, env), ...values };
}

/** The secrets of the store, which must be redacted. */
export const storeSecrets = (backups: { to: BackupTarget } | null): string[] =>
  backups?.to.kind === "store" ? [backups.to.secretAccessKey, backups.to.sessionToken ?? ""].filter(Boolean) : [];
