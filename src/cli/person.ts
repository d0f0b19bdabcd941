import type { Command } from "commander";
import { setOperator } from "../auth/operators.ts";
import { getPerson } from "../auth/people.ts";
import { toResetPath } from "../auth/resets.ts";
import { resetTwoFactor } from "../auth/two-factor.ts";
import type { Config } from "../config/config.ts";
import { badRequest } from "../errors.ts";
import { withData } from "./data-directory.ts";
import { addPersonDelete } from "./deletion.ts";
import { print, say, toJson } from "./terminal.ts";

/** Adds `person reset-link`, `person reset-two-factor` and `person set`. */
export function addPerson(program: Command, configOf: () => Config): void {
  const person = program.command("person").description("Manage user accounts");
  addPersonDelete(person, configOf);
  person
    .command("reset-link <email>")
    .description("Create a password reset link for a user and print it to stdout")
    .option("--json", "Print the link as JSON")
    .addHelpText("after", "\nExample:\n  evald person reset-link ada@example.com")
    .action((email: string, { json }: { json?: boolean }) => {
      const link = withData(configOf(), ({ ctx }) => ctx.baseUrl() + toResetPath(ctx, getPerson(ctx, email)));
      say("The link works once and expires in 24 hours. Anyone who opens it can sign in as this user.");
      print(json ? toJson({ url: link }) : link);
    });
  person
    .command("reset-two-factor <email>")
    .description("Remove a user's authenticator app, backup codes and passkeys, and sign the user out everywhere")
    .option("--json", "Print the user as JSON")
    .addHelpText("after", "\nExample:\n  evald person reset-two-factor ada@example.com")
    .action((email: string, { json }: { json?: boolean }) => {
      const person = withData(configOf(), ({ ctx }) => resetTwoFactor(ctx, email));
      say(`${person.name} now signs in with the password alone, and can set up second factors again.`);
      print(json ? toJson(person) : person.id);
    });
  person
    .command("set <email>")
    .description("Make a user an operator, who sees and controls the queue of all organizations, or take that away")
    .option("--operator", "Make the user an operator")
    .option("--no-operator", "Take it away")
    .option("--json", "Print the user as JSON")
    .addHelpText("after", "\nExample:\n  evald person set ada@example.com --operator")
    .action((email: string, { operator, json }: { operator?: boolean; json?: boolean }) => {
      if (operator === undefined) throw badRequest("Nothing to change. Use --operator or --no-operator.");
      const changed = withData(configOf(), ({ ctx }) => setOperator(ctx, email, operator));
      say(operator ? `${changed.name} is an operator now.` : `${changed.name} is no operator any more.`);
      print(json ? toJson({ ...changed, isOperator: operator }) : changed.id);
    });
}
