import { rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { linesOf } from "../agents/lines.ts";
import { type AgentProcess, ownCommand, startProcess } from "../agents/process.ts";
import { type BackupTarget, locationOf } from "../config/backup-settings.ts";
import type { Context } from "../context.ts";
import { settlesWithin } from "../deadline.ts";
import { reasonOf } from "../errors.ts";
import { createPoll } from "../poll.ts";
import {
  type BackupEnd,
  endBackup,
  failInterruptedBackups,
  findBackupState,
  getBackup,
  listBackupNames,
  listKeptBackups,
  startDueBackup,
} from "./backups.ts";
import { backupName, listExpired } from "./retention.ts";

/** Time between checks, since another process may have requested a backup. */
const longestSleepMs = 5_000;
/** Time limit of a backup. Its copy, transfer and check usually take minutes. */
const longestMs = 6 * 3600_000;

/** The folder of a backup in progress, in the data directory. */
export const workFolder = "backup.unfinished";

/**
 * The order that the process of a backup gets, as a line of JSON. `expired`: files to delete once the new backup is checked. `known`: the names of
 * this database's backups. A target that contains only backups of other databases is refused, unless `known` is null because a person chose the
 * target.
 */
export type BackupOrder = {
  dataDir: string;
  target: BackupTarget;
  name: string;
  expired: string[];
  known: string[] | null;
};
/** The answer of that process, as a line of JSON. `removed`: the files of `expired` that were deleted. */
export type BackupAnswer = { bytes: number; runs: number; removed: string[] } | { failure: string };

/**
 * Backs the service up on schedule and on request, one backup at a time. Each backup runs in its own process with a low priority, so it doesn't delay
 * requests and can be killed. `env`: the environment with which that process reaches a store.
 */
export function createBackupLoop(ctx: Context, env: Record<string, string>) {
  let child: AgentProcess | null = null;
  let isStopping = false;

  /** Starts what is due. Returns the delay until the next check, in milliseconds. */
  async function check(): Promise<number> {
    failInterruptedBackups(ctx);
    const { backups } = ctx.config;
    const name = backupName(ctx.now());
    // The names must be read first: once the new backup has started, its name is among them.
    const known = listBackupNames(ctx);
    const id = isStopping ? null : startDueBackup(ctx, name, backups === null ? "" : locationOf(backups.to, name));
    if (id === null) return sleepMs(ctx);
    const startedAt = ctx.monotonicNow();
    const isRequested = getBackup(ctx, id).requestedBy !== null;
    const end = await makeBackup(name, isRequested ? null : known);
    endBackup(ctx, id, end);
    const ms = Math.round(ctx.monotonicNow() - startedAt);
    if ("failure" in end) ctx.log.error({ backup: id, ms, failure: end.failure }, "backup failed");
    else ctx.log.info({ backup: id, ms, bytes: end.bytes, removed: end.removed.length }, "backed up");
    return 0;
  }

  async function makeBackup(name: string, known: string[] | null): Promise<BackupEnd> {
    const { backups, dataDir } = ctx.config;
    if (backups === null) return { failure: "EVALD_BACKUP_TO is not set." };
    // The new backup counts too, so that the backup that it replaces is deleted once the new one is checked.
    const keptBackups = listKeptBackups(ctx);
    const newBackup = { id: "", name, startedAt: ctx.now() };
    const expired = listExpired([...keptBackups, newBackup], backups)
      .filter((backup) => backup !== newBackup)
      .map((backup) => backup.name);
    try {
      const order = { dataDir: resolve(dataDir), target: backups.to, name, expired, known };
      const answer = await runProcess(order);
      if ("failure" in answer) return answer;
      const removed = keptBackups.filter((each) => answer.removed.includes(each.name)).map((each) => each.id);
      return { ...answer, removed };
    } catch (error) {
      return { failure: reasonOf(error) };
    }
  }

  async function runProcess(order: BackupOrder): Promise<BackupAnswer> {
    const backupProcess = startProcess(ownCommand("__backup"), env);
    child = backupProcess;
    try {
      backupProcess.lowerPriority();
      await backupProcess.write(`${JSON.stringify(order)}\n`);
      const answer = readAnswer(backupProcess.stdout);
      if (!(await settlesWithin(answer, longestMs)))
        return { failure: `It took longer than ${longestMs / 3600_000} hours.` };
      const text = await answer;
      if (text !== null) return JSON.parse(text);
      const reason = isStopping
        ? "The service stopped in between."
        : `Its process ${(await backupProcess.end("wait")) ?? "was killed"}.`;
      return { failure: `${reason} ${backupProcess.stderrTail()}`.trim() };
    } finally {
      backupProcess.kill();
      await backupProcess.end("wait");
      rmSync(join(order.dataDir, workFolder), { recursive: true, force: true });
      child = null;
    }
  }

  const poll = createPoll({
    check,
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check scheduled backups");
    },
    retryMs: longestSleepMs,
  });

  return {
    /** Makes the backup that is due now, if there is one. */
    tick: check,
    /** Checks now. */
    wake: poll.wake,
    start: poll.start,
    /** Kills a backup in progress. It is made again after the next start. */
    stop(): Promise<void> {
      isStopping = true;
      child?.kill();
      return poll.stop();
    },
  };
}

const sleepMs = (ctx: Context): number =>
  Math.max(1, Math.min(longestSleepMs, (findBackupState(ctx)?.dueAt ?? Number.POSITIVE_INFINITY) - ctx.now()));

/** The first line of a stream; null: it ended without one. */
async function readAnswer(stdout: ReadableStream<Uint8Array>): Promise<string | null> {
  for await (const line of linesOf(stdout)) return line;
  return null;
}

/** Whether a service on this database can be backed up: one in memory has no file. */
export const canBackUp = ({ db }: Context): boolean => dirname(db.$client.filename) !== ".";
