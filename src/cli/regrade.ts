import { Value } from "@sinclair/typebox/value";
import type { Command } from "commander";
import type { Config } from "../config.ts";
import { tx } from "../db/open.ts";
import { badRequest } from "../errors.ts";
import { type Regrade, RegradeRequest } from "../regrades/schema.ts";
import { explain } from "../schema.ts";
import { orgOf, print, say, wholeNumber, withData } from "./terminal.ts";

type Options = {
  org?: string;
  prompt?: string;
  since: string;
  until?: string;
  methodology?: string;
  judge?: string;
  repeats?: number;
  maxUsd?: number;
  dryRun?: boolean;
  json?: boolean;
};

/** Adds `regrade`: the service, running now or at its next start, grades stored sessions again. */
export function addRegrade(program: Command, configOf: () => Config): void {
  program
    .command("regrade")
    .description("grade stored sessions again, by another methodology or judge; no agent is sent")
    .requiredOption("--since <date>", "reports made at or after, as in 2026-11-01")
    .option("--until <date>", "reports made before")
    .option("--org <name>", "organisation (needed where there are several)")
    .option("--prompt <id>", "only reports of this prompt")
    .option("--methodology <id>", "1, or the id in EVALD_METHODOLOGY; default: that of new reports")
    .option("--judge <model>", "provider/model that judges the sessions anew")
    .option(
      "--repeats <n>",
      "times that each session is judged, to see how far the judge agrees with itself",
      wholeNumber(1, 20),
    )
    .option("--max-usd <amount>", "what the judge may cost in all; needed with --judge", Number)
    .option("--dry-run", "only say what would be done")
    .option("--json", "print it as JSON")
    .addHelpText(
      "after",
      `
Examples:
  evald regrade --since 2026-11-01 --methodology 1
  evald regrade --since 2026-11-01 --judge openai/gpt-5 --repeats 3 --max-usd 20 --dry-run`,
    )
    .action(({ org, prompt: promptId, json, ...asked }: Options) => {
      const made = withData(configOf(), (service) => {
        checkRequest({ ...asked, promptId });
        return tx(service.deps.db, (t) => service.regrades.accept(t, orgOf(service, org), { ...asked, promptId }));
      });
      say(wordsOf(made));
      print(json ? JSON.stringify(made) : (made.regradeId ?? "dry run"));
    });
}

/** Throws bad_request, as the API does. */
function checkRequest(asked: unknown): void {
  const wrong = Value.Errors(RegradeRequest, asked).First();
  if (wrong) throw badRequest(explain(wrong, "the request"));
}

function wordsOf({
  regradeId,
  methodology,
  total,
  graded,
  unchanged,
  withoutEvents,
  estimatedUsd,
  judge,
}: Regrade): string {
  const cost =
    judge === null ? "" : ` for ${estimatedUsd === null ? "nobody knows how much" : `about $${estimatedUsd}`}`;
  return regradeId === null
    ? `methodology ${methodology}: of ${total} reports ${graded} would be graded again${cost}, ${unchanged} are already, ${withoutEvents} have no stored session any more`
    : `methodology ${methodology}: ${total} reports are to be looked at${cost}; the service does it, now or at its next start: GET /api/v1/regrades/${regradeId}`;
}
