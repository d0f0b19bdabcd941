import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { getBackup, listBackups, maxListed, requestBackup } from "../backups/backups.ts";
import { deletedSinceText } from "../backups/labels.ts";
import { listStored } from "../backups/object-store.ts";
import { isBackupName } from "../backups/retention.ts";
import type { Backup } from "../backups/schema.ts";
import { type BackupTarget, locationOf, toBackupTarget } from "../config/backup-settings.ts";
import type { Config } from "../config/config.ts";
import { badRequest, conflict, reasonOf, unavailable } from "../errors.ts";
import { count, toSize } from "../grading/text.ts";
import { withData } from "./data-directory.ts";
import { findRunningService } from "./running.ts";
import { print, say, table, toJson } from "./terminal.ts";

type Env = Record<string, string | undefined>;

/** How often a command checks whether a backup is done. */
const pollMs = 500;

/** Adds `backups run` and `backups list`, for the backups that the service makes itself. */
export function addBackups(program: Command, configOf: () => Config, env: Env): void {
  const command = program.command("backups").description("Make and list the backups of the running service");
  command
    .command("run")
    .description(
      "Have the running service back up now to where EVALD_BACKUP_TO says, check the backup, and wait for it",
    )
    .option("--json", "Print the result as JSON")
    .addHelpText("after", "\nExample:\n  evald backups run --data /var/lib/evald")
    .action(async ({ json }: { json?: boolean }) => {
      const result = await runBackup(configOf());
      say(`Backed up and checked ${count(result.runs ?? 0, "run")}, ${toSize(result.bytes ?? 0)}.`);
      print(json ? toJson(result) : (result.location ?? ""));
    });
  command
    .command("list [place]")
    .description("List what the service has backed up, or the backups in a directory or at s3://bucket/prefix")
    .option("--json", "Print the list as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  evald backups list --data /var/lib/evald\n  evald backups list s3://backups/evald",
    )
    .action(async (place: string | undefined, { json }: { json?: boolean }) => {
      const config = configOf();
      if (place !== undefined) {
        const files = await listFiles(toBackupTarget(place, env));
        print(
          json
            ? toJson(files)
            : table([["BACKUP", "SIZE"], ...files.map((each) => [each.location, toSize(each.bytes)])]),
        );
        return;
      }
      const all = withData(config, ({ ctx }) => listBackups(ctx, maxListed));
      print(
        json
          ? toJson(all)
          : table([["STARTED", "STATUS", "SIZE", "RUNS", "DELETED SINCE", "BACKUP"], ...all.map(toListRow)]),
      );
    });
}

const toListRow = (backup: Backup): string[] => [
  backup.startedAt ?? backup.createdAt,
  backup.removedAt === null ? backup.status : "deleted",
  backup.bytes === null ? "" : toSize(backup.bytes),
  backup.runs === null ? "" : String(backup.runs),
  deletedSinceText(backup),
  backup.failure ?? backup.location ?? "",
];

/**
 * Asks the service that runs on the data directory for a backup, and waits until it is done. Throws conflict if no service runs, and unavailable if
 * the backup failed.
 */
async function runBackup(config: Config): Promise<Backup> {
  if (findRunningService(config.dataDir) === null)
    throw conflict(
      "No service runs on this data directory. Start it with EVALD_BACKUP_TO, or back up to a file: evald backup FILE",
    );
  const { id } = withData(config, ({ ctx }) => requestBackup(ctx));
  for (;;) {
    const backup = withData(config, ({ ctx }) => getBackup(ctx, id));
    if (backup.status === "completed") return backup;
    if (backup.status === "failed") throw unavailable(`The backup failed: ${backup.failure}`);
    if (findRunningService(config.dataDir) === null)
      throw unavailable("The service stopped in between. It backs up once it runs again.");
    await Bun.sleep(pollMs);
  }
}

/** Files named like scheduled backups, the oldest first. */
async function listFiles(target: BackupTarget): Promise<{ location: string; bytes: number }[]> {
  const files =
    target.kind === "store"
      ? await listStored(target)
      : readDirectory(target.path).map((name) => ({ name, bytes: statSync(join(target.path, name)).size }));
  return files
    .filter(({ name }) => isBackupName(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, bytes }) => ({ location: locationOf(target, name), bytes }));
}

/** Throws bad_request. */
function readDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    throw badRequest(`${path} can't be read: ${reasonOf(error)}.`);
  }
}
