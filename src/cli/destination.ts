import { Argument, type Command, Option } from "commander";
import { deliveryStatuses, destinationKinds } from "../db/tables/notifications.ts";
import { badRequest } from "../errors.ts";
import { count } from "../grading/text.ts";
import { subscribableTypes } from "../notifications/events.ts";
import type { DestinationInput } from "../notifications/schema.ts";
import { type ApiOptions, addServiceOptions, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

type CreateOptions = ApiOptions & {
  name?: string;
  endpoint?: string;
  events: string;
  header?: string[];
  to?: string[];
};

const toEvents = (text: string): DestinationInput["events"] =>
  text.split(",").map((each) => {
    const type = subscribableTypes.find((event) => event === each.trim());
    if (!type)
      throw badRequest(`Unknown event ${JSON.stringify(each.trim())}. Use one of ${subscribableTypes.join(", ")}.`);
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
const exampleId = "0199f3a5-7a3e-7c11-8b2d-4f5e6d7c8b9a";
const exampleDeliveryId = "0199f3a6-0b1c-7d22-9e3f-5a6b7c8d9e0f";

const formatMs = (ms: number | null): string => (ms === null ? "" : `${ms} ms`);

/** Adds the commands of webhooks, Slack channels and email digests. */
export function addDestination(program: Command, useApi: UseApi): void {
  const destination = program.command("destination").description("Manage webhooks, Slack channels and email digests");
  const addOptions = (command: Command) => addServiceOptions(command.option("--json", "Print the result as JSON"));
  addCreate(destination, useApi);

  addOptions(destination.command("list"))
    .description("List destinations, newest first")
    .addHelpText("after", example("list --org Acme"))
    .action(({ json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const { items } = await api.list("GET /destinations", { query: { limit: 1000 } });
        const rows = items.map(({ id, kind, name, disabledBecause, events }) => [
          id,
          kind,
          name,
          disabledBecause ? `disabled (${disabledBecause})` : "active",
          events.join(","),
        ]);
        print(json ? toJson(items) : table([["ID", "TYPE", "NAME", "STATUS", "EVENTS"], ...rows]));
      }),
    );

  const addStatusCommand = (verb: string, description: string, status: "active" | "disabled") =>
    addOptions(destination.command(`${verb} <id>`))
      .description(description)
      .addHelpText("after", example(`${verb} ${exampleId}`))
      .action((destinationId: string, { json, ...address }: ApiOptions) =>
        useApi(address, async (api) => {
          const updated = await api.request("PATCH /destinations/{destinationId}", {
            path: { destinationId },
            body: { status },
          });
          say(`The destination ${updated.name} is ${updated.status}.`);
          print(json ? toJson(updated) : updated.id);
        }),
      );
  addStatusCommand("enable", "Enable a destination", "active");
  addStatusCommand("disable", "Disable a destination", "disabled");

  addOptions(destination.command("delete <id>"))
    .description("Delete a destination with its deliveries")
    .addHelpText("after", example(`delete ${exampleId}`))
    .action((destinationId: string, { json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const deleted = await api.request("DELETE /destinations/{destinationId}", { path: { destinationId } });
        say(`Deleted the destination ${deleted.name}.`);
        print(json ? toJson(deleted) : deleted.id);
      }),
    );

  addOptions(destination.command("rotate <id>"))
    .description("Replace the signing secret of a webhook and print the new one; the old one also signs for 24 hours")
    .addHelpText("after", example(`rotate ${exampleId}`))
    .action((destinationId: string, { json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const rotated = await api.request("POST /destinations/{destinationId}/rotate", { path: { destinationId } });
        say(
          `Copy the secret now: it will not be shown again. Requests are also signed with the old one until ${rotated.overlapUntil}.`,
        );
        print(json ? toJson(rotated) : (rotated.secret ?? ""));
      }),
    );

  addDeliveries(destination, addOptions, useApi);
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
  addServiceOptions(create)
    .addHelpText("after", example("create webhook --endpoint https://ci.example.com/hook --events gate.decided"))
    .action(
      async (
        kind: DestinationInput["kind"],
        { org, url, json, events, header, to, endpoint, ...input }: CreateOptions,
      ) => {
        const body = {
          kind,
          ...input,
          events: toEvents(events),
          ...(endpoint !== undefined && { url: endpoint }),
          ...(header && { headers: toHeaders(header) }),
          ...(to && { recipients: to }),
        };
        await useApi({ org, url }, async (api) => {
          const created = await api.request("POST /destinations", { body });
          say(`Added the destination ${created.name}.`);
          if (created.secret !== null) say(`Signing secret, shown only once: ${created.secret}`);
          print(json ? toJson(created) : created.id);
        });
      },
    );
}

/** Adds the commands about deliveries. */
function addDeliveries(destination: Command, addOptions: (command: Command) => Command, useApi: UseApi): void {
  addOptions(destination.command("test <id>"))
    .description("Queue a test event, which the service sends")
    .addHelpText("after", example(`test ${exampleId}`))
    .action((destinationId: string, { json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const delivery = await api.request("POST /destinations/{destinationId}/test", { path: { destinationId } });
        say("Queued a test event.");
        print(json ? toJson(delivery) : delivery.id);
      }),
    );
  addOptions(destination.command("deliveries <id>"))
    .description("List deliveries to a destination, newest first")
    .addOption(new Option("--status <status>", "Only deliveries with this status").choices(deliveryStatuses))
    .option("--limit <count>", "Maximum number of deliveries", wholeNumber(1, 1000), 20)
    .addHelpText("after", example(`deliveries ${exampleId} --status failed`))
    .action(
      (
        destinationId: string,
        { json, status, limit, ...address }: ApiOptions & { status?: (typeof deliveryStatuses)[number]; limit: number },
      ) =>
        useApi(address, async (api) => {
          const deliveries = await api.list("GET /destinations/{destinationId}/deliveries", {
            path: { destinationId },
            query: { status, limit },
          });
          const rows = deliveries.items.map(({ id, type, status, tries, lastStatus, lastMs, createdAt }) => [
            id,
            type,
            status,
            String(tries),
            String(lastStatus ?? ""),
            formatMs(lastMs),
            createdAt,
          ]);
          const heads = ["ID", "EVENT", "STATUS", "TRIES", "RESPONSE", "TIME", "CREATED"];
          print(json ? toJson(deliveries.items) : table([heads, ...rows]));
          sayRest(deliveries);
        }),
    );
  addOptions(destination.command("delivery <id> <delivery>"))
    .description("Show the tries of a delivery, with status, duration and response")
    .addHelpText("after", example(`delivery ${exampleId} ${exampleDeliveryId}`))
    .action((destinationId: string, deliveryId: string, { json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const delivery = await api.request("GET /destinations/{destinationId}/deliveries/{deliveryId}", {
          path: { destinationId, deliveryId },
        });
        const rows = delivery.log.map(({ attempt, at, status, ms, body, error }) => [
          String(attempt),
          at,
          String(status ?? ""),
          formatMs(ms),
          (error ?? body ?? "").replace(/\s+/g, " ").trim(),
        ]);
        print(json ? toJson(delivery, 2) : table([["TRY", "AT", "RESPONSE", "TIME", "BODY OR ERROR"], ...rows]));
      }),
    );
  addOptions(destination.command("replay <id> [delivery]"))
    .description(
      "Send a delivery again, with the same webhook-id, or with --all everything that the destination missed",
    )
    .option("--all", "All deliveries that are being retried, and the failed ones whose event was not delivered later")
    .addHelpText("after", example(`replay ${exampleId} --all`))
    .action(
      (
        destinationId: string,
        deliveryId: string | undefined,
        { json, all = false, ...address }: ApiOptions & { all?: boolean },
      ) => {
        if (all === (deliveryId !== undefined)) throw badRequest("Name one delivery, or use --all.");
        return useApi(address, async (api) => {
          if (deliveryId === undefined) {
            const result = await api.request("POST /destinations/{destinationId}/replay", { path: { destinationId } });
            say(`Queued ${count(result.replayed, "delivery", "deliveries")}.`);
            return print(json ? toJson(result) : String(result.replayed));
          }
          const delivery = await api.request("POST /destinations/{destinationId}/deliveries/{deliveryId}/replay", {
            path: { destinationId, deliveryId },
          });
          say("Queued the delivery.");
          print(json ? toJson(delivery) : delivery.id);
        });
      },
    );
}
