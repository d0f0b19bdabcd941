import { readFileSync, statSync } from "node:fs";
import type { Command } from "commander";
import { checkArchive } from "../archives/archive-check.ts";
import { count } from "../grading/text.ts";
import { loadTar } from "../lazy-packages.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { toReadError } from "./files.ts";
import { print, say, table, toJson } from "./terminal.ts";

/** Adds `archive upload`, `archive list` and `archive delete`. */
export function addArchive(program: Command, useApi: UseApi): void {
  const archive = program.command("archive").description("Manage archives: files that workspaces start with");
  addApiOptions(
    archive.command("upload <path>").description("Upload a directory or a tar.gz file and print its ID to stdout"),
    "Print the archive as JSON",
    "archive upload ./starter-template",
  ).action(async (path: string, { json, ...address }: ApiOptions) => {
    await useApi(address, async (api) => {
      const content = await readArchive(path);
      // Checks the file here, so that a file that the service would reject isn't sent.
      await checkArchive(content);
      const created = await api.request("POST /archives", {
        body: new Blob([content], { type: "application/gzip" }),
      });
      say(
        `Uploaded ${count(created.files, "file")} (${count(created.bytes, "byte")}). Set the ID as workspace.archive of a prompt.`,
      );
      print(json ? toJson(created) : created.id);
    });
  });
  addApiOptions(
    archive.command("list").description("List archives, newest first"),
    "Print the list as JSON",
    "archive list --json",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const { items } = await api.list("GET /archives", { query: { limit: 1000 } });
      const rows = items.map((each) => [each.id, String(each.files), String(each.bytes), each.createdAt]);
      print(json ? toJson(items) : table([["ID", "FILES", "BYTES", "CREATED"], ...rows]));
    }),
  );
  addApiOptions(
    archive.command("delete <id>").description("Delete an archive that no prompt uses"),
    "Print the archive as JSON",
    "archive delete 0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70",
  ).action((id: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const deleted = await api.request("DELETE /archives/{archiveId}", { path: { archiveId: id } });
      say(`Deleted archive ${deleted.id}.`);
      print(json ? toJson(deleted) : deleted.id);
    }),
  );
}

/** Reads an archive: a directory is packed, and anything else must be a tar.gz file. Throws bad_request that names the path. */
export async function readArchive(path: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    if (!statSync(path).isDirectory()) return new Uint8Array(readFileSync(path));
    const packed = loadTar().create({ gzip: true, portable: true, cwd: path }, ["."]);
    return new Uint8Array(await packed.concat());
  } catch (error) {
    throw toReadError(error, path);
  }
}
