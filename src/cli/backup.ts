import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { recordBackup } from "../db/backup-record.ts";
import { badRequest } from "../errors.ts";
import { count, toSize } from "../grading/text.ts";
import { copyTo } from "./database-copy.ts";
import { checkNewFile } from "./files.ts";
import { print, say, toJson } from "./terminal.ts";

/** Adds `backup`: copies the database to one file, with or without a running service. */
export function addBackup(program: Command, configOf: () => Config): void {
  program
    .command("backup <file>")
    .description("Back up the database to a file; the service can keep running")
    .option("--force", "Overwrite the file if it exists")
    .option("--json", "Print the result as JSON")
    .addHelpText("after", "\nExample:\n  evald backup /var/backups/evald.backup")
    .action((file: string, { force, json }: { force?: boolean; json?: boolean }) => {
      const { dataDir } = configOf();
      const result = backup(dataDir, file, { force: force ?? false });
      say(`Backed up ${count(result.runs, "run")}, ${toSize(result.bytes)}.`);
      print(json ? toJson(result) : result.file);
    });
}

function backup(dataDir: string, file: string, { force }: { force: boolean }) {
  const database = join(dataDir, "evald.db");
  if (!existsSync(database))
    throw badRequest(`There is no database at ${database}. Choose the data directory with --data.`);
  checkNewFile(dataDir, file, { force });
  const result = copyTo(database, file);
  recordBackup(dataDir);
  return { file, ...result };
}
