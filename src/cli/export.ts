import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Config } from "../config/config.ts";
import { type ExportFilter, exportFormats } from "../exchange/schema.ts";
import { scopes } from "../grading/kinds.ts";
import { toSize } from "../grading/text.ts";
import { type ApiOptions, addServiceOptions, type UseApi } from "./connection.ts";
import { checkNewFile, removeUnfinished, toWriteError } from "./files.ts";
import { parseScore, print, say, toJson } from "./terminal.ts";

type ExportOptions = Omit<ExportFilter, "promptId" | "runId" | "auditLog"> &
  ApiOptions & { auditLog?: boolean; prompt?: string; run?: string; force?: boolean };

/** Adds `export`: writes an organization's data to a file, for `import` or for other programs. */
export function addExport(program: Command, configOf: () => Config, useApi: UseApi): void {
  const command = program
    .command("export <file>")
    .description("Export runs, sessions and reports to a file; the service can keep running")
    .addOption(
      new Option("--format <format>", "Output format; jsonl contains everything and can be imported")
        .choices(exportFormats)
        .default("jsonl"),
    )
    .option("--audit-log", "With --format jsonl: also the audit log")
    .option("--since <date>", "Only runs requested at or after this time, such as 2026-11-01")
    .option("--until <date>", "Only runs requested before this time")
    .option("--prompt <id>", "Only runs of this prompt")
    .option("--run <id>", "Only this run, such as to share its report and session")
    .option("--min-score <n>", "With --format junit: mark lower scores as failures", parseScore)
    .addOption(
      new Option("--scope <scope>", "Scope of the scores that --min-score applies to (default: goal)").choices(scopes),
    )
    .option("--force", "Overwrite the file if it exists")
    .option("--json", "Print the result as JSON");
  addServiceOptions(command)
    .addHelpText(
      "after",
      "\nExamples:\n  evald export acme.jsonl --org Acme\n  evald export results.xml --format junit --min-score 80 --since 2026-11-01",
    )
    .action(
      async (
        file: string,
        { org, url, prompt: promptId, run: runId, auditLog, force = false, json, ...filter }: ExportOptions,
      ) => {
        checkNewFile(configOf().dataDir, file, { force });
        const query = { ...filter, promptId, runId, ...(auditLog && { auditLog: "1" as const }) };
        const bytes = await useApi({ org, url }, async (api) =>
          write(file, await api.download("GET /export", { query })),
        );
        say(`Exported ${toSize(bytes)}.`);
        print(json ? toJson({ file, bytes }) : file);
      },
    );
}

/** Writes a file atomically, readable for its owner only. Returns its size in bytes. */
async function write(file: string, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  removeUnfinished(file);
  const unfinished = `${file}.${process.pid}.unfinished`;
  let bytes = 0;
  try {
    const descriptor = openSync(unfinished, "w", 0o600);
    for await (const piece of pieces) {
      for (let written = 0; written < piece.length; ) written += writeSync(descriptor, piece, written);
      bytes += piece.length;
    }
    fsyncSync(descriptor);
    closeSync(descriptor);
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw toWriteError(error, unfinished);
  }
  return bytes;
}
