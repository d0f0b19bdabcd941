import { type Command, InvalidArgumentError, Option } from "commander";
import { type AuditAction, auditActions, isAuditAction } from "../audit/actions.ts";
import { listAuditEntries } from "../audit/audit-log.ts";
import type { AuditEntry } from "../audit/schema.ts";
import type { Config } from "../config/config.ts";
import { oneLine } from "../grading/text.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { withData } from "./data-directory.ts";
import { print, say, table, toJson, wholeNumber } from "./terminal.ts";

type AuditOptions = ServiceAddress & {
  service?: boolean;
  actor?: string;
  action?: AuditAction;
  since?: string;
  until?: string;
  limit: number;
  json?: boolean;
};

function parseAction(text: string): AuditAction {
  if (!isAuditAction(text)) throw new InvalidArgumentError(`Must be one of ${Object.keys(auditActions).join(", ")}.`);
  return text;
}

/** Adds `audit`: who changed what. */
export function addAudit(program: Command, configOf: () => Config, useApi: UseApi): void {
  const command = program
    .command("audit")
    .description("List who changed what, newest first")
    .addOption(
      new Option("--service", "What concerns the service and no organization, from the data directory").conflicts([
        "org",
        "url",
      ]),
    )
    .option("--actor <id>", "Only entries of this person, API key or trust, by ID")
    .option("--action <action>", "Only entries with this action, such as key.created", parseAction)
    .option("--since <date>", "Only entries at or after this time, such as 2026-11-01")
    .option("--until <date>", "Only entries before this time")
    .option("--limit <n>", "Maximum number of entries", wholeNumber(1, 1000), 100)
    .option("--json", "Print the entries as JSON");
  addServiceOptions(command)
    .addHelpText("after", "\nExamples:\n  evald audit --action key.created\n  evald audit --since 2026-11-01 --json")
    .action(async ({ org, url, service, json, limit, ...filter }: AuditOptions) => {
      const { entries, nextBefore } = service
        ? withData(configOf(), ({ ctx }) => listAuditEntries(ctx, null, filter, { limit }))
        : await useApi({ org, url }, (api) => api.request("GET /audit-log", { query: { ...filter, limit } }));
      if (json) return print(toJson(entries));
      print(table([["TIME", "WHO", "ACTION", "TARGET", "FROM"], ...entries.map(toRow)]));
      if (nextBefore !== null) say("There are older entries. Raise --limit, or use --until.");
    });
}

const toRow = ({ createdAt, actor, action, target, ipAddress }: AuditEntry): string[] => [
  createdAt,
  `${oneLine(actor.name, 40)} (${actor.kind})`,
  action,
  oneLine(target.name ?? target.id ?? "", 50),
  ipAddress ?? "",
];
