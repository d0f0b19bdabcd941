import { Argument, type Command, Option } from "commander";
import { deliveryStatuses, destinationKinds } from "../db/tables/notifications.ts";
import { badRequest } from "../errors.ts";
import { subscribable } from "../notifications/events.ts";
import type { DestinationInput } from "../notifications/schema.ts";
import { addPlace, type Place, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, wholeNumber } from "./terminal.ts";

type Common = Place & { json?: boolean };
type CreateOptions = Common & {
  name?: string;
  endpoint?: string;
  events: string;
  header?: string[];
  to?: string[];
};

const toEvents = (text: string): DestinationInput["events"] =>
  text.split(",").map((each) => {
    const type = subscribable.find((known) => known === each.trim());
    if (!type) throw badRequest(`Unknown event ${JSON.stringify(each.trim())}. Events: ${subscribable.join(", ")}`);
    return type;
  });

function toHeaders(lines: string[]): Record<string, string> {
  const pairs = lines.map((line) => {
    const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw badRequest(`Invalid header ${JSON.stringify(line)}. Use "Name: value".`);
    return [name, value ?? ""];
  });
  return Object.fromEntries(pairs);
}

const example = (text: string) => `\nExample:\n  evald destination ${text}`;
const id = "0199f3a5-7a3e-7c11-8b2d-4f5e6d7c8b9a";
const deliveryId = "0199f3a6-0b1c-7d22-9e3f-5a6b7c8d9e0f";

const toMs = (ms: number | null): string => (ms === null ? "" : `${ms} ms`);

/** Adds the commands of webhooks, Slack channels and email digests. */
export function addDestination(program: Command, useApi: UseApi): void {
  const destination = program.command("destination").description("Manage webhooks, Slack channels and email digests");
  const json = (command: Command) => addPlace(command.option("--json", "Print the result as JSON"));
  addCreate(destination, useApi);

  json(destination.command("list"))
    .description("List destinations, newest first")
    .addHelpText("after", example("list --org Acme"))
    .action(
      async ({ json, ...place }: Common) =>
        await useApi(place, async (api) => {
          const { items } = await api.listDestinations();
          const rows = items.map((each) => [
            ...[each.id, each.kind, each.name, each.disabledBecause ? `disabled (${each.disabledBecause})` : "active"],
            each.events.join(","),
          ]);
          print(json ? JSON.stringify(items) : table([["ID", "TYPE", "NAME", "STATUS", "EVENTS"], ...rows]));
        }),
    );

  const change = (what: string, description: string, status: "active" | "disabled") =>
    json(destination.command(`${what} <id>`))
      .description(description)
      .addHelpText("after", example(`${what} ${id}`))
      .action(
        async (given: string, { json, ...place }: Common) =>
          await useApi(place, async (api) => {
            const changed = await api.updateDestination(given, { status });
            say(`The destination ${changed.name} is ${changed.status}.`);
            print(json ? JSON.stringify(changed) : changed.id);
          }),
      );
  change("enable", "Enable a destination", "active");
  change("disable", "Disable a destination", "disabled");

  json(destination.command("delete <id>"))
    .description("Delete a destination with its deliveries")
    .addHelpText("after", example(`delete ${id}`))
    .action(
      async (given: string, { json, ...place }: Common) =>
        await useApi(place, async (api) => {
          const gone = await api.deleteDestination(given);
          say(`Deleted the destination ${gone.name}.`);
          print(json ? JSON.stringify(gone) : gone.id);
        }),
    );

  json(destination.command("rotate <id>"))
    .description("Replace the signing secret of a webhook and print the new one; the old one also signs for 24 hours")
    .addHelpText("after", example(`rotate ${id}`))
    .action(
      async (given: string, { json, ...place }: Common) =>
        await useApi(place, async (api) => {
          const rotated = await api.rotateSecret(given);
          say(
            `Copy the secret now: it will not be shown again. Requests are also signed with the old one until ${rotated.overlapUntil}.`,
          );
          print(json ? JSON.stringify(rotated) : (rotated.secret ?? ""));
        }),
    );

  addDeliveries(destination, json, useApi);
}

function addCreate(destination: Command, useApi: UseApi): void {
  const create = destination
    .command("create")
    .addArgument(new Argument("<kind>", "Type").choices(destinationKinds))
    .description("Add a destination and print its ID to stdout; the signing secret of a webhook is shown only once")
    .requiredOption("--events <events>", "Comma-separated events, such as run.completed,friction.regressed")
    .option("--endpoint <url>", "URL of the webhook, or of the incoming webhook in Slack")
    .option("--name <name>", "Name of the destination")
    .option("--header <header...>", 'Header of a webhook, such as "Authorization: Bearer 3c9d"')
    .option("--to <email...>", "Members who receive the email (default: all owners)")
    .option("--json", "Print the destination as JSON");
  addPlace(create)
    .addHelpText("after", example("create webhook --endpoint https://ci.example.com/hook --events gate.decided"))
    .action(
      async (
        kind: DestinationInput["kind"],
        { org, url, json, events, header, to, endpoint, ...input }: CreateOptions,
      ) => {
        const asked = {
          ...{ kind, ...input, events: toEvents(events) },
          ...(endpoint !== undefined && { url: endpoint }),
          ...(header && { headers: toHeaders(header) }),
          ...(to && { recipients: to }),
        };
        await useApi({ org, url }, async (api) => {
          const made = await api.createDestination(asked);
          say(`Added the destination ${made.name}.`);
          if (made.secret !== null) say(`Signing secret, shown only once: ${made.secret}`);
          print(json ? JSON.stringify(made) : made.id);
        });
      },
    );
}

type ListOptions = Common & { status?: (typeof deliveryStatuses)[number]; limit: number };

/** Adds the commands of the log. */
function addDeliveries(destination: Command, json: (command: Command) => Command, useApi: UseApi): void {
  json(destination.command("test <id>"))
    .description("Queue a test event, which the service sends")
    .addHelpText("after", example(`test ${id}`))
    .action(
      async (given: string, { json, ...place }: Common) =>
        await useApi(place, async (api) => {
          const queued = await api.testDestination(given);
          say("Queued a test event.");
          print(json ? JSON.stringify(queued) : queued.id);
        }),
    );
  json(destination.command("deliveries <id>"))
    .description("List deliveries to a destination, newest first")
    .addOption(new Option("--status <status>", "Only deliveries with this status").choices(deliveryStatuses))
    .option("--limit <count>", "Maximum number of deliveries", wholeNumber(1, 1000), 20)
    .addHelpText("after", example(`deliveries ${id} --status failed`))
    .action(
      async (given: string, { json, status, limit, ...place }: ListOptions) =>
        await useApi(place, async (api) => {
          const found = await api.listDeliveries(given, { status, limit });
          const rows = found.items.map((each) => [
            ...[each.id, each.type, each.status, String(each.tries), String(each.lastStatus ?? "")],
            ...[toMs(each.lastMs), each.createdAt],
          ]);
          const heads = ["ID", "EVENT", "STATUS", "TRIES", "RESPONSE", "TIME", "CREATED"];
          print(json ? JSON.stringify(found.items) : table([heads, ...rows]));
          sayRest(found);
        }),
    );
  json(destination.command("delivery <id> <delivery>"))
    .description("Show the tries of a delivery, with status, duration and response")
    .addHelpText("after", example(`delivery ${id} ${deliveryId}`))
    .action(
      async (given: string, delivery: string, { json, ...place }: Common) =>
        await useApi(place, async (api) => {
          const shown = await api.getDelivery(given, delivery);
          const rows = shown.log.map(({ attempt, at, status, ms, body, error }) => [
            ...[String(attempt), at, String(status ?? ""), toMs(ms)],
            (error ?? body ?? "").replace(/\s+/g, " ").trim(),
          ]);
          print(
            json
              ? JSON.stringify(shown, null, 2)
              : table([["TRY", "AT", "RESPONSE", "TIME", "BODY OR ERROR"], ...rows]),
          );
        }),
    );
  json(destination.command("replay <id> <delivery>"))
    .description("Queue a delivery again, with the same webhook-id")
    .addHelpText("after", example(`replay ${id} ${deliveryId}`))
    .action(
      async (given: string, delivery: string, { json, ...place }: Common) =>
        await useApi(place, async (api) => {
          const again = await api.replayDelivery(given, delivery);
          say("Queued the delivery.");
          print(json ? JSON.stringify(again) : again.id);
        }),
    );
}
