import { type Command, Option } from "commander";
import { badRequest } from "../errors.ts";
import type { FrictionSummary } from "../friction/schema.ts";
import { frictionStates, severities } from "../grading/kinds.ts";
import { count } from "../grading/text.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

type FrictionFilter = ApiOptions & {
  provider?: string;
  severity?: (typeof severities)[number];
  state?: (typeof frictionStates)[number];
  agent?: string;
  dismissed?: boolean;
  limit: number;
};

/** Adds `friction`: lists friction points. */
export function addFriction(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("friction [prompt]")
      .description("List friction points of a prompt, by ID or title, or of a provider; most severe first")
      .option("--provider <id>", "Of all prompts of this provider, instead of one prompt")
      .addOption(new Option("--severity <severity>", "Only this severity").choices(severities))
      .addOption(new Option("--state <state>", "Only this state").choices(frictionStates))
      .option("--agent <id>", "Only what runs of this agent hit")
      .option("--dismissed", "Only dismissed friction points")
      .option("--limit <n>", "Maximum number to list", wholeNumber(1, 1000), 50),
    "Print the list as JSON",
    'friction "First query" --state regressed',
  ).action((prompt: string | undefined, { provider, dismissed, json, url, org, limit, ...filter }: FrictionFilter) =>
    useApi({ url, org }, async (api) => {
      if ((prompt === undefined) === (provider === undefined))
        throw badRequest("Name one prompt, or pass --provider with the ID of a provider.");
      const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt, { archived: true });
      const query = {
        ...filter,
        promptId,
        providerId: provider,
        limit,
        dismissed: dismissed ? ("true" as const) : undefined,
      };
      const friction = await api.list("GET /friction", { query });
      const heads = ["FINGERPRINT", "SEVERITY", "STATE", "TITLE", "PAGE", "SEEN", "POINTS"];
      print(json ? toJson(friction.items) : table([heads, ...friction.items.map(toRow)]));
      sayRest(friction);
    }),
  );
}

const toRow = ({ fingerprint, severity, state, title, url, seenIn, lostPoints }: FrictionSummary): string[] => [
  fingerprint,
  severity,
  state,
  title,
  url ?? "",
  `${seenIn.runs} of ${count(seenIn.of, "run")}`,
  lostPoints === null ? "" : lostPoints.toFixed(1),
];
