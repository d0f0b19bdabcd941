import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { readStoredSession, type StoredSession, storedAgents } from "../agents/coding/stored/stored-session.ts";
import type { Config } from "../config/config.ts";
import { badRequest, conflict } from "../errors.ts";
import { extractSession, type Product } from "../field/session-extract.ts";
import type { Provider } from "../providers/schema.ts";
import { type Api, findProvider } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { addFieldImport } from "./field-import.ts";
import { toReadError } from "./files.ts";
import { print, repeatable, say, toJson } from "./terminal.ts";

type Env = Record<string, string | undefined>;
type SessionOptions = ServiceAddress & { provider: string; program?: string[]; send?: boolean };

/** Adds `field session`. */
export function addField(program: Command, configOf: () => Config, useApi: UseApi, env: Env): void {
  const field = program.command("field").description("Report what agents do outside of runs");
  addFieldImport(field, configOf, useApi);
  addServiceOptions(
    field
      .command("session <file>")
      .description("Print what a stored session of a coding agent shows about a product, and nothing else of it")
      .requiredOption("--provider <name>", "Name or ID of the provider")
      .option(
        "--program <name>",
        "Program or MCP server of the product (repeatable, default: the provider's name)",
        repeatable,
      )
      .option("--send", "Send it after you have read it and typed yes"),
  )
    .addHelpText(
      "after",
      `\nSessions of ${storedAgents.join(", ")}. Of opencode, store what \`opencode export\` prints.\n\nExample:\n  evald field session ~/.claude/projects/-home-me-app/SESSION.jsonl --provider Acme`,
    )
    .action(async (file: string, options: SessionOptions) => {
      // Reads the settings first, so that an invalid setting is reported before the session is read.
      configOf();
      if (options.send) checkIsPerson(env);
      const session = readSession(file);
      await useApi(options, (api) => reportSession(api, file, session, options));
    });
}

/** Throws bad_request without a person at the terminal, who must be able to read what would be sent. */
function checkIsPerson(env: Env): void {
  if (env.CI) throw badRequest("--send is not for CI jobs: a person must read what is sent.");
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw badRequest("--send needs a terminal: a person must read what is sent and type yes.");
}

/** Reads a session and the sessions of its subagents, which Claude Code stores beside it. Throws bad_request for any other file. */
function readSession(file: string): StoredSession {
  try {
    const folder = join(file.replace(/\.jsonl$/, ""), "subagents");
    const subagents = file.endsWith(".jsonl") && existsSync(folder) ? readdirSync(folder).sort() : [];
    const files = [file, ...subagents.filter((name) => name.endsWith(".jsonl")).map((name) => join(folder, name))];
    const session = readStoredSession(files.map((each) => readFileSync(each, "utf8")).join("\n"));
    if (session) return session;
  } catch (error) {
    throw toReadError(error, file);
  }
  throw badRequest(`${file} is not a stored session of ${storedAgents.join(", ")}.`);
}

async function reportSession(api: Api, file: string, session: StoredSession, options: SessionOptions): Promise<void> {
  const provider = await findProvider(api, options.provider);
  const { input, calls } = extractSession(session, toProduct(provider, options.program));
  if (input.calls.length === 0)
    throw badRequest(`None of the ${calls} calls in ${file} uses ${provider.name}. Name its programs with --program.`);
  print(toJson(input, 2));
  const failed = input.calls.filter(({ ok }) => ok === false).length;
  say(
    `${input.calls.length} of ${calls} calls use ${provider.name}, ${failed} failed. Nothing else leaves this machine.`,
  );
  if (!options.send) return say("Nothing was sent. Send it with --send.");
  say("Look for names of people and customers in texts and URLs: evald can't recognize them.");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal
    .question(`${api.isLocal ? "Store this here" : `Send this to ${api.base}`}? Type yes: `)
    .finally(() => terminal.close());
  if (answer.trim().toLowerCase() !== "yes") throw conflict("Nothing was sent.");
  const received = await api.request("POST /field-sessions", { body: input });
  say(`Sent. The service made ${received.reports.length} reports of it.`);
}

/** The URLs and programs of a provider. The default program is the provider's name, if that is one word. */
function toProduct({ name, docsUrl, productUrl }: Provider, programs = [name]): Product {
  return {
    urls: [docsUrl, productUrl].flatMap((url) => URL.parse(url ?? "") ?? []),
    programs: programs.map((program) => program.toLowerCase()),
  };
}
