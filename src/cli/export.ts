import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Config } from "../config.ts";
import { badRequest } from "../errors.ts";
import { type ExportFilter, exportFormats } from "../exchange/schema.ts";
import { refuseOwnFile, removeUnfinished } from "./backup.ts";
import { orgOf, print, say, toSize, wholeNumber, withData } from "./terminal.ts";

type Options = Omit<ExportFilter, "promptId"> & { org?: string; prompt?: string; force?: boolean; json?: boolean };

/** What is written at once. */
const pieceChars = 1024 * 1024;

/** Adds `export`: what an organisation has, as a file for `import` or for other programs. */
export function addExport(program: Command, configOf: () => Config): void {
  program
    .command("export <file>")
    .description("write runs, sessions and reports to a file; the service may run meanwhile")
    .option("--org <name>", "organisation (needed where there are several)")
    .addOption(
      new Option("--format <format>", "jsonl: everything, for evald import").choices(exportFormats).default("jsonl"),
    )
    .option("--since <date>", "runs accepted at or after, as in 2026-11-01")
    .option("--until <date>", "runs accepted before")
    .option("--prompt <id>", "only runs of this prompt")
    .option("--min-score <n>", "with --format junit: a report below it is a failure", wholeNumber(0, 100))
    .option("--force", "replace the file if it is there")
    .option("--json", "print what was made as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  evald export acme.jsonl --org Acme\n  evald export results.xml --format junit --min-score 80 --since 2026-11-01",
    )
    .action((file: string, { org, prompt: promptId, force = false, json, ...filter }: Options) => {
      const config = configOf();
      if (existsSync(file) && (!statSync(file).isFile() || !force))
        throw badRequest(`${file} is there already; name another file, or replace it with --force`);
      refuseOwnFile(config.dataDir, file);
      const bytes = withData(config, (service) =>
        write(file, service.exports.exportOrg(orgOf(service, org), { ...filter, promptId })),
      );
      say(toSize(bytes));
      print(json ? JSON.stringify({ file, bytes }) : file);
    });
}

/** Writes a file that has its name only once it is whole and on the disk, and is for its owner alone. Answers with its bytes. */
function write(file: string, pieces: Iterable<string>): number {
  removeUnfinished(file);
  const unfinished = `${file}.${process.pid}.unfinished`;
  const opened = openSync(unfinished, "w", 0o600);
  let bytes = 0;
  try {
    let text = "";
    const flush = () => {
      const piece = Buffer.from(text);
      for (let at = 0; at < piece.length; ) at += writeSync(opened, piece, at);
      bytes += piece.length;
      text = "";
    };
    for (const piece of pieces) {
      text += piece;
      if (text.length >= pieceChars) flush();
    }
    flush();
    fsyncSync(opened);
    closeSync(opened);
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  return bytes;
}
