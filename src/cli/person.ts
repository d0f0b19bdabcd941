import type { Command } from "commander";
import { findPerson } from "../auth/people.ts";
import { toResetPath } from "../auth/resets.ts";
import type { Config } from "../config/config.ts";
import { notFound } from "../errors.ts";
import { withData } from "./data-directory.ts";
import { print, say, toJson } from "./terminal.ts";

/** Adds `person reset-link`. */
export function addPerson(program: Command, configOf: () => Config): void {
  const person = program.command("person").description("Manage user accounts");
  person
    .command("reset-link <email>")
    .description("Create a password reset link for a user and print it to stdout")
    .option("--json", "Print the link as JSON")
    .addHelpText("after", "\nExample:\n  evald person reset-link ada@example.com")
    .action((email: string, { json }: { json?: boolean }) => {
      const link = withData(configOf(), ({ ctx }) => {
        const person = findPerson(ctx, email);
        if (!person) throw notFound(`No user has the email address ${JSON.stringify(email)}.`);
        return ctx.baseUrl() + toResetPath(ctx, person.id);
      });
      say("The link works once and expires in 24 hours. Anyone who opens it can sign in as this user.");
      print(json ? toJson({ url: link }) : link);
    });
}
