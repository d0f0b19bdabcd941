import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Config } from "../config/config.ts";
import { codeOf } from "../db/fault.ts";
import { badRequest, reasonOf } from "../errors.ts";
import { count } from "../grading/text.ts";
import { httpUrl } from "../schema.ts";
import { countLog, type LogCounts } from "../traffic/log-counts.ts";
import { type LogFormat, logFormats } from "../traffic/log-formats.ts";
import { maxPagesPerRequest } from "../traffic/schema.ts";
import { type ApiOptions, addServiceOptions, type UseApi } from "./connection.ts";
import { toReadError } from "./files.ts";
import { print, say, table, toJson } from "./terminal.ts";

type FieldImport = ApiOptions & { docs: string; format: LogFormat | "auto"; dryRun?: boolean };

/** The result for one log, as `--json` prints it. `log`: its SHA-256. */
type ImportedLog = LogCounts & { file: string; log: string };

/** The largest share of lines that may be unreadable. */
const maxUnreadShare = 0.2;

/** Adds `field import`: counts in access logs what agents read, and sends only the counts. */
export function addFieldImport(field: Command, configOf: () => Config, useApi: UseApi): void {
  addServiceOptions(
    field
      .command("import <files...>")
      .description("Count in access logs what agents read, on this machine, and send only the counts; - reads stdin")
      .requiredOption("--docs <url>", "URL of the docs, with the path that all pages have")
      .addOption(new Option("--format <format>", "Format of the logs").choices(["auto", ...logFormats]).default("auto"))
      .option("--dry-run", "Only print what would be sent")
      .option("--json", "Print the counts as JSON"),
  )
    .addHelpText(
      "after",
      "\nSent are counts by month, agent and page: no addresses, queries, user agents and times of day.\n\nExample:\n  evald field import access.log.gz --docs https://docs.acme.example/ --dry-run",
    )
    .action(async (files: string[], { docs, format, dryRun, json, ...address }: FieldImport) => {
      // Reads the settings first, so that an invalid setting is reported before the logs are read.
      configOf();
      if (httpUrl(docs) === null)
        throw badRequest(`Invalid value ${JSON.stringify(docs)} for --docs: must be an http or https URL.`);
      const logs: ImportedLog[] = [];
      for (const file of files) logs.push(await readLog(file, docs, format === "auto" ? null : format));
      for (const log of logs) explain(log);
      if (!dryRun)
        await useApi(address, (api) => sendAll(logs, (body) => api.request("POST /field-traffic", { body })));
      print(json ? toJson(logs) : toTable(logs));
      say(dryRun ? "Nothing was sent." : `Sent the counts of ${count(logs.length, "log")}.`);
    });
}

/** Reads a log once, for its counts and its digest. Throws bad_request if the log can't be read, or too many of its lines aren't understood. */
async function readLog(file: string, docs: string, format: LogFormat | null): Promise<ImportedLog> {
  const hash = createHash("sha256");
  async function* bytes() {
    const stream = file === "-" ? process.stdin : createReadStream(file, { highWaterMark: 128 * 1024 });
    for await (const piece of stream) {
      hash.update(piece);
      yield piece as Uint8Array;
    }
  }
  let counts: LogCounts;
  try {
    if (file !== "-" && statSync(file).isDirectory()) throw badRequest(`${file} is a folder. Pass the files in it.`);
    counts = await countLog(bytes(), docs, format);
  } catch (error) {
    const code = codeOf(error);
    if (code === "Z_DATA_ERROR" || code === "Z_BUF_ERROR")
      throw badRequest(
        `${file} is damaged: it can't be unpacked (${reasonOf(error)}). Copy it again. Nothing was sent.`,
      );
    throw toReadError(error, file);
  }
  const { lines, unread, samples } = counts;
  if (unread > lines * maxUnreadShare)
    throw badRequest(
      `${unread} of ${lines} lines of ${file} are no requests in a known format, such as ${JSON.stringify(samples[0])}. Pass --format, or the log of another server. Nothing was sent.`,
    );
  return { file, log: hash.digest("hex"), ...counts };
}

function explain({ file, lines, unread, samples, requests, leftOut, pages }: ImportedLog): void {
  const kinds = Object.entries(requests).map(([kind, n]) => `${kind} ${n}`);
  say(`${file}: ${count(lines, "line")}; ${kinds.join(", ")}.`);
  if (unread > 0) say(`  Not read: ${count(unread, "line")}, such as ${JSON.stringify(samples[0])}.`);
  if (leftOut > 0) say(`  Left out: ${count(leftOut, "request")} for the pages that were asked for least.`);
  if (pages.length === 0) say("  No agent asked for a page below --docs. Is that the address of the docs of this log?");
}

/** Sends the counts of logs in requests of bounded size. Sending the same request twice changes nothing. */
async function sendAll(
  logs: ImportedLog[],
  send: (body: { log: string; pages: LogCounts["pages"] }) => Promise<unknown>,
): Promise<void> {
  for (const { log, pages } of logs)
    for (let from = 0; from < pages.length; from += maxPagesPerRequest)
      await send({ log, pages: pages.slice(from, from + maxPagesPerRequest) });
}

const shownPages = 20;

/** The pages with the most requests. */
function toTable(logs: ImportedLog[]): string {
  const pages = logs.flatMap((log) => log.pages).sort((a, b) => b.reads + b.missing - a.reads - a.missing);
  const rows = pages.slice(0, shownPages).map(({ month, kind, name, url, reads, markdown, missing }) => {
    const counts = [reads, markdown, missing].map(String);
    return [month, kind, name, ...counts, url];
  });
  return table([["MONTH", "KIND", "AGENT", "READS", "MARKDOWN", "MISSING", "PAGE"], ...rows]);
}
