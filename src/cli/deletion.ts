import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { changeEmail } from "../auth/email-change.ts";
import { getOrgByName } from "../auth/orgs.ts";
import { getPerson } from "../auth/people.ts";
import type { Person } from "../auth/person.ts";
import type { Config } from "../config/config.ts";
import type { Context } from "../context.ts";
import { countDeleted, deleteOrg, listDeletedOrgs, restore } from "../deletions/deletions.ts";
import { deletePerson, exportPerson } from "../deletions/people.ts";
import type { Deletion } from "../deletions/schema.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { count } from "../grading/text.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { operatorName, withData } from "./data-directory.ts";
import { print, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

type DeletionOptions = ApiOptions & { yes?: boolean };

const yesOption = ["--yes", "Don't ask"] as const;

/** Asks for confirmation before something is deleted. Throws conflict unless the answer is yes, and bad_request if nobody can answer. */
async function askToDelete(question: string, isAgreed = false): Promise<void> {
  if (isAgreed) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw badRequest(`${question} Confirm with --yes.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question} [y/N] `).finally(() => terminal.close());
  if (!/^y(es)?$/i.test(answer.trim())) throw conflict("Nothing was deleted.");
}

function sayDeleted({ id, title, counts, erasesAt }: Deletion): void {
  say(`Deleted “${title}” with ${count(counts.runs, "run")} and ${count(counts.reports, "report")}.`);
  say(`Restore it until ${erasesAt} with: evald deletions restore ${id}`);
}

/** Adds `prompt delete`. */
export function addPromptDelete(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt
      .command("delete <prompt>")
      .description("Delete a prompt with its runs and reports, by ID or title")
      .option(...yesOption),
    "Print the deletion as JSON",
    'prompt delete "First query" --yes',
  ).action((name: string, { yes, json, ...address }: DeletionOptions) =>
    useApi(address, async (api) => {
      const promptId = await findPromptId(api, name, { archived: true });
      await askToDelete(`Delete the prompt ${JSON.stringify(name)} with all its runs and reports?`, yes);
      const deletion = await api.request("DELETE /prompts/{promptId}", { path: { promptId } });
      sayDeleted(deletion);
      print(json ? toJson(deletion) : deletion.id);
    }),
  );
}

/** Adds `delete run`. */
export function addRunDelete(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("delete")
      .description("Delete what has no commands of its own")
      .command("run <run>")
      .description("Delete a run with its session and report")
      .option(...yesOption),
    "Print the deletion as JSON",
    "delete run 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20 --yes",
  ).action((runId: string, { yes, json, ...address }: DeletionOptions) =>
    useApi(address, async (api) => {
      await askToDelete(`Delete the run ${runId} with its session and report?`, yes);
      const deletion = await api.request("DELETE /runs/{runId}", { path: { runId } });
      sayDeleted(deletion);
      print(json ? toJson(deletion) : deletion.id);
    }),
  );
}

/** Adds `deletions`: lists what was deleted, restores it, or erases it now. */
export function addDeletions(program: Command, useApi: UseApi): void {
  const deletions = program.command("deletions").description("Manage what was deleted");
  addApiOptions(
    deletions
      .command("list")
      .description("List what was deleted, newest first")
      .option("--limit <n>", "Maximum number to list", wholeNumber(1, 1000), 20),
    "Print the list as JSON",
    "deletions list",
  ).action(({ limit, json, ...address }: ApiOptions & { limit: number }) =>
    useApi(address, async (api) => {
      const list = await api.list("GET /deletions", { query: { limit } });
      const rows = list.items.map((each) => [each.id, each.kind, each.status, each.title ?? "", each.erasesAt]);
      print(json ? toJson(list.items) : table([["ID", "KIND", "STATUS", "TITLE", "ERASED AT"], ...rows]));
      sayRest(list);
    }),
  );
  addApiOptions(
    deletions.command("restore <deletion>").description("Restore what was deleted"),
    "Print the deletion as JSON",
    "deletions restore 0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
  ).action((deletionId: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const deletion = await api.request("POST /deletions/{deletionId}/restore", { path: { deletionId } });
      say(`Restored “${deletion.title}”.`);
      print(json ? toJson(deletion) : deletion.id);
    }),
  );
  addApiOptions(
    deletions
      .command("erase <deletion>")
      .description("Erase what was deleted now, for good")
      .option(...yesOption),
    "Print the deletion as JSON",
    "deletions erase 0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f --yes",
  ).action((deletionId: string, { yes, json, ...address }: DeletionOptions) =>
    useApi(address, async (api) => {
      await askToDelete(`Erase ${deletionId} for good?`, yes);
      const deletion = await api.request("POST /deletions/{deletionId}/erase", { path: { deletionId } });
      print(json ? toJson(deletion) : deletion.id);
    }),
  );
}

/** Adds `org delete` and `org restore`. */
export function addOrgDelete(org: Command, configOf: () => Config): void {
  org
    .command("delete <name>")
    .description("Delete an organization with everything in it; it is erased after 7 days")
    .option(...yesOption)
    .option("--json", "Print the deletion as JSON")
    .addHelpText("after", '\nExample:\n  evald org delete "Acme" --yes')
    .action(async (name: string, { yes, json }: { yes?: boolean; json?: boolean }) => {
      const deletion = await withData(configOf(), async ({ ctx }) => {
        const { id } = getOrgByName(ctx, name);
        const { prompts, runs } = countDeleted(ctx, id);
        await askToDelete(`Delete ${name} with ${count(prompts, "prompt")} and ${count(runs, "run")}?`, yes);
        return await deleteOrg(ctx, id, operatorName());
      });
      say(
        `Deleted organization ${name}. Restore it until ${deletion.erasesAt} with: evald org restore ${JSON.stringify(name)}`,
      );
      print(json ? toJson(deletion) : deletion.id);
    });
  org
    .command("restore <name>")
    .description("Restore a deleted organization")
    .option("--json", "Print the deletion as JSON")
    .addHelpText("after", '\nExample:\n  evald org restore "Acme"')
    .action(async (name: string, { json }: { json?: boolean }) => {
      const deletion = await withData(configOf(), async ({ ctx }) => {
        const deleted = listDeletedOrgs(ctx).find(({ title }) => title === name.trim());
        if (!deleted) throw notFound(`No deleted organization is named ${JSON.stringify(name)}.`);
        return await restore(ctx, deleted.org, deleted.id);
      });
      say(`Restored organization ${name}.`);
      print(json ? toJson(deletion) : deletion.subjectId);
    });
}

/** Adds `person export`, `person set-email` and `person delete`. */
export function addPersonDelete(person: Command, configOf: () => Config): void {
  const withAccount = <T>(email: string, work: (ctx: Context, account: Person) => T): T =>
    withData(configOf(), ({ ctx }) => work(ctx, getPerson(ctx, email)));
  person
    .command("export <email>")
    .description("Print everything that is stored about a user, as JSON")
    .addHelpText("after", "\nExample:\n  evald person export ada@example.com > ada.json")
    .action((email: string) => {
      const data = withAccount(email, (ctx, { id }) => exportPerson(ctx, id));
      print(toJson(data, 2));
    });
  person
    .command("set-email <email> <new-email>")
    .description("Change the email address of a user")
    .addHelpText("after", "\nExample:\n  evald person set-email ada@example.com ada@example.org")
    .action((email: string, newEmail: string) => {
      withAccount(email, (ctx, account) => changeEmail(ctx, account, newEmail, { isProven: false }));
      say(`${email} signs in with ${newEmail} now.`);
    });
  person
    .command("delete <email>")
    .description("Delete the account of a user for good")
    .option(...yesOption)
    .addHelpText("after", "\nExample:\n  evald person delete ada@example.com --yes")
    .action(async (email: string, { yes }: { yes?: boolean }) => {
      await withAccount(email, async (ctx, { id }) => {
        await askToDelete(`Delete the account ${email} for good?`, yes);
        await deletePerson(ctx, id);
      });
      say(`Deleted the account ${email}.`);
    });
}
