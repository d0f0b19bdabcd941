import { type Command, Option } from "commander";
import { pauseKinds } from "../db/tables/pauses.ts";
import type { QueueOverview } from "../queue/schema.ts";
import type { Api } from "./api.ts";
import { type ApiOptions, addOperatorOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, say, table, toJson } from "./terminal.ts";

/** Adds the commands about the queue of all organizations. They are for operators. */
export function addQueue(program: Command, useApiOfOrg: UseApi): void {
  const useApi = <T>(address: ServiceAddress, work: (api: Api) => Promise<T>): Promise<T> =>
    useApiOfOrg(address, work, { isForAllOrgs: true });
  const queue = program.command("queue").description("See and control the queue of all organizations, as an operator");
  addOperatorOptions(
    queue.command("show").description("Show what waits and runs, by organization and agent"),
    "Print the queue as JSON",
    "queue show",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const overview = await api.request("GET /queue");
      print(json ? toJson(overview) : toText(overview));
    }),
  );
  for (const [action, description] of [
    ["pause", "Pause an organization or an agent: new runs wait, running ones end as usual"],
    ["resume", "Resume an organization or an agent"],
  ] as const) {
    const command = queue
      .command(`${action} <subject>`)
      .description(description)
      .addOption(new Option("--kind <kind>", "What the name belongs to").choices(pauseKinds).default("agent"));
    if (action === "pause") command.option("--reason <text>", "Shown to everyone whose runs wait");
    addOperatorOptions(command, "Print the pause as JSON", `queue ${action} codex`).action(
      (
        subject: string,
        { kind, reason, json, ...address }: ApiOptions & { kind: (typeof pauseKinds)[number]; reason?: string },
      ) =>
        useApi(address, async (api) => {
          const result =
            action === "pause"
              ? await api.request("POST /queue/pauses", { body: { kind, subject, reason } })
              : await api.request("DELETE /queue/pauses/{kind}/{subject}", { path: { kind, subject } });
          say(`${action === "pause" ? "Paused" : "Resumed"} the ${kind} ${result.name}.`);
          print(json ? toJson(result) : result.subject);
        }),
    );
  }
  addOperatorOptions(
    queue.command("failures").description("List what failed in the last 7 days and was not retried, by cause"),
    "Print the list as JSON",
    "queue failures",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const groups = await api.request("GET /queue/failures");
      const rows = groups.map(({ id, failed, organizations, newestAt }) => [
        id,
        String(failed),
        organizations.join(", "),
        newestAt,
      ]);
      print(json ? toJson(groups) : table([["GROUP", "FAILED", "ORGANIZATIONS", "NEWEST"], ...rows]));
    }),
  );
  addOperatorOptions(
    queue.command("retry <group>").description("Retry a group of failures, the oldest 100"),
    "Print the result as JSON",
    "queue retry delivery-exhausted-500",
  ).action((groupId: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const result = await api.request("POST /queue/failures/{groupId}/retry", { path: { groupId } });
      const { retried, refused, left } = result;
      print(json ? toJson(result) : `Retried ${retried}, refused ${refused}, left ${left}.`);
    }),
  );
}

function toText({ organizations, agents, deliveries }: QueueOverview): string {
  type Row = Omit<QueueOverview["agents"][number], "agent">;
  const toRow = (kind: string, name: string, row: Row) => {
    const counts = [row.waiting, row.delayed, row.paused, row.running, row.failing].map(String);
    return [kind, name, row.isPaused ? "yes" : "", ...counts, row.oldestWaitingAt ?? ""];
  };
  const { waiting, delayed, running } = deliveries;
  return table([
    ["KIND", "NAME", "IS PAUSED", "WAITING", "TO BE RETRIED", "PAUSED", "RUNNING", "FAILED BEFORE", "OLDEST WAITING"],
    ...organizations.map(({ name, ...row }) => toRow("organization", name, row)),
    ...agents.map(({ agent, ...row }) => toRow("agent", agent, row)),
    ["notifications", "all", "", String(waiting), String(delayed), "", String(running), "", ""],
  ]);
}
