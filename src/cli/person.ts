import type { Command } from "commander";
import type { Config } from "../config.ts";
import { notFound } from "../errors.ts";
import { print, say, withData } from "./terminal.ts";

/** Adds `person reset-link`. */
export function addPerson(program: Command, configOf: () => Config): void {
  const person = program.command("person").description("people who sign in");
  person
    .command("reset-link <email>")
    .description("make the address at which somebody sets a new password; it goes to stdout")
    .addHelpText("after", "\nExample:\n  evald person reset-link ada@example.com")
    .action((email: string) => {
      const link = withData(configOf(), ({ people, deps }) => {
        const found = people.findPerson(email);
        if (!found) throw notFound(`nobody signs in with ${JSON.stringify(email)}`);
        return deps.baseUrl() + people.toResetPath(found.id);
      });
      say("good once, for a day; whoever opens it can sign in as that person");
      print(link);
    });
}
