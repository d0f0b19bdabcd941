import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import type { AgentLogin } from "../models/login-schema.ts";
import { listLogins, removeLogin, setLogin } from "../models/logins.ts";
import { withData } from "./data-directory.ts";
import { orgOf, print, say, table, toJson } from "./terminal.ts";

type LoginOptions = { org?: string; json?: boolean };

/** Adds `agent logins`, `agent set-login` and `agent remove-login`. */
export function addLogins(command: Command, configOf: () => Config): void {
  command
    .command("logins")
    .description("List the logins of coding agents, and when they expire")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald agent logins --org Acme")
    .action(({ org, json }: LoginOptions) => {
      const logins = withData(configOf(), (service) => listLogins(service.ctx, orgOf(service, org)));
      const rows = logins.map((login) => [login.agent, login.state, login.expiresAt ?? "unknown", login.createdAt]);
      print(json ? toJson(logins) : table([["AGENT", "STATE", "EXPIRES", "STORED"], ...rows]));
    });
  command
    .command("set-login <agent>")
    .description("Store an organization's login for a coding agent, encrypted; reads its login file from stdin")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the login as JSON, without its content")
    .addHelpText("after", "\nExample:\n  evald agent set-login codex < ~/.codex/auth.json")
    .action(async (agent: string, { org, json }: LoginOptions) => {
      const config = configOf();
      if (process.stdin.isTTY) say("Paste the file, press Enter, then Ctrl-D.");
      const text = await Bun.stdin.text();
      const login = withData(config, (service) => setLogin(service.ctx, orgOf(service, org), agent, text));
      say(`Stored the login for ${agent}. ${expiryOf(login)}.`);
      print(json ? toJson(login) : agent);
    });
  command
    .command("remove-login <agent>")
    .description("Remove an organization's login for a coding agent")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the login as JSON")
    .addHelpText("after", "\nExample:\n  evald agent remove-login codex --org Acme")
    .action((agent: string, { org, json }: LoginOptions) => {
      const login = withData(configOf(), (service) => removeLogin(service.ctx, orgOf(service, org), agent));
      say(`Removed the login for ${agent}.`);
      print(json ? toJson(login) : agent);
    });
}

const expiryOf = ({ expiresAt }: AgentLogin): string =>
  expiresAt === null ? "The file doesn't say when it expires" : `It expires at ${expiresAt}`;
