import type { Command } from "commander";
import { dollars } from "../grading/text.ts";
import { itemSize, itemSubject, itemText } from "../inbox/labels.ts";
import type { Inbox, InboxItem } from "../inbox/schema.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, say, table, toJson } from "./terminal.ts";

/** Adds `inbox`, which lists what got worse and what fails, like Home. */
export function addInbox(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("inbox")
      .description("List what got worse or fails, worst first, and then what got better")
      .option("--snoozed", "Include snoozed problems"),
    "Print everything as JSON",
    "inbox",
  ).action(({ json, snoozed, ...address }: ApiOptions & { snoozed?: boolean }) =>
    useApi(address, async (api) => {
      const inbox = await api.request("GET /inbox", { query: { snoozed: snoozed ? "true" : undefined } });
      if (json) return print(toJson(inbox));
      const items = [...inbox.problems, ...inbox.improvements];
      if (items.length === 0) say("Nothing got worse, and nothing fails.");
      else print(table([["SIZE", "WHAT", "SINCE", "DETAILS"], ...items.map(toRow)]));
      say(toSummary(inbox));
    }),
  );
}

const toRow = (item: InboxItem): string[] => [
  itemSize(item),
  itemSubject(item),
  item.since.slice(0, 10),
  toDetails(item),
];

function toDetails(item: InboxItem): string {
  return [itemText(item), commandFor(item)].filter((part) => part !== null).join(" · ");
}

/** The command to use next for an item; null: none. */
function commandFor(item: InboxItem): string | null {
  if (item.kind === "runs_failed") return item.failure.command;
  return item.kind === "score_fell" || item.kind === "score_rose" ? `evald why ${item.prompt.id}` : null;
}

function toSummary({ snoozed, spending: { spentUsd, maxUsd, expectedUsd } }: Inbox): string {
  const parts = [
    `Spent this month: ${dollars(spentUsd)}${maxUsd === null ? "" : ` of ${dollars(maxUsd)}`}`,
    ...(expectedUsd === null ? [] : [`at this pace: ${dollars(expectedUsd)}`]),
    ...(snoozed === 0 ? [] : [`snoozed: ${snoozed} (--snoozed)`]),
  ];
  return `${parts.join("; ")}.`;
}
