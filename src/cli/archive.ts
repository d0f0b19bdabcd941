import { readFileSync, statSync } from "node:fs";
import type { Command } from "commander";
import { create } from "tar";
import { checkArchive } from "../archives/archive-check.ts";
import type { Config } from "../config/config.ts";
import { orgOf, print, say, table, withData } from "./terminal.ts";

type Options = { org?: string; json?: boolean };

/** Adds `archive upload`, `archive list` and `archive delete`. */
export function addArchive(program: Command, configOf: () => Config): void {
  const archive = program.command("archive").description("Manage archives: files that workspaces start with");
  archive
    .command("upload <path>")
    .description("Upload a directory or a tar.gz file and print its ID to stdout")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the archive as JSON")
    .addHelpText("after", "\nExample:\n  evald archive upload ./starter-template")
    .action(async (path: string, { org, json }: Options) => {
      const config = configOf();
      const checked = await checkArchive(await read(path));
      const made = withData(config, (service) => service.archives.createArchive(orgOf(service, org), checked));
      const files = made.files === 1 ? "1 file" : `${made.files} files`;
      say(`Uploaded ${files} (${made.bytes} bytes). Set the ID as workspace.archive of a prompt.`);
      print(json ? JSON.stringify(made) : made.id);
    });
  archive
    .command("list")
    .description("List archives, newest first")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald archive list --json")
    .action(({ org, json }: Options) => {
      const all = withData(configOf(), (service) => service.archives.listArchives(orgOf(service, org)));
      const rows = all.map((each) => [each.id, String(each.files), String(each.bytes), each.createdAt]);
      print(json ? JSON.stringify(all) : table([["ID", "FILES", "BYTES", "CREATED"], ...rows]));
    });
  archive
    .command("delete <id>")
    .description("Delete an archive that no prompt uses")
    .option("--org <name>", "Organization (required if there are several)")
    .addHelpText("after", "\nExample:\n  evald archive delete 0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70")
    .action((id: string, { org }: Options) => {
      withData(configOf(), (service) => service.archives.deleteArchive(orgOf(service, org), id));
      say(`Deleted archive ${id}.`);
      print(id);
    });
}

/** A directory is packed; anything else must be a tar.gz file. */
async function read(path: string): Promise<Uint8Array> {
  if (!statSync(path).isDirectory()) return readFileSync(path);
  const packed = create({ gzip: true, portable: true, cwd: path }, ["."]);
  return new Uint8Array(await packed.concat());
}
