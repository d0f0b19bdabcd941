import { and, asc, eq, isNotNull, ne, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { prompts } from "../db/tables/prompts.ts";
import type { SuiteSlot } from "../db/tables/suites.ts";
import { invalidField } from "../errors.ts";
import type { DeclaredCheck } from "../prompts/check-schema.ts";
import type { PromptRow } from "../prompts/prompt-check.ts";
import { createPrompt } from "../prompts/prompts.ts";
import { fillTemplate, templateVarsOf } from "../prompts/template.ts";
import type { CreatedPrompts } from "../proposals/schema.ts";
import { getProvider } from "../providers/providers.ts";
import { baseline, defaultValues } from "./baseline.ts";
import type { Suite, SuiteProduct } from "./schema.ts";
import { getSuite } from "./suites.ts";

/**
 * Creates the prompts of a suite for a product in one transaction, in the order of the slots. They start at the docs of the product. If a variable of
 * a check has no value, the check is left out. Throws not_found, and bad_request, which names the field.
 */
export function createSuitePrompts(ctx: Context, org: OrgId, suiteId: string, product: SuiteProduct): CreatedPrompts {
  const suite = getSuite(ctx, org, suiteId);
  const provider = getProvider(ctx, org, product.providerId);
  if (provider.docsUrl === null) throw invalidField("providerId", "the provider has no docsUrl, at which runs start");
  const values = { ...(suite.id === baseline.id && defaultValues), ...product.values };
  const checksOf = product.checks ?? {};
  const unknown = Object.keys(checksOf).find((name) => suite.slots.every(({ slot }) => slot !== name));
  if (unknown !== undefined) throw invalidField("checks", `the suite has no slot named ${unknown}`);
  return transaction(ctx.db, () => {
    const prompts = suite.slots.map((slot) => {
      const declaredChecks = [...filledChecks(slot, values), ...(checksOf[slot.slot] ?? [])];
      const input = {
        ...filledSlot(slot, values),
        targetProviderId: provider.id,
        limits: suite.limits,
        ...(suite.agents && { agents: suite.agents }),
        ...(declaredChecks.length > 0 && { declaredChecks }),
        tags: [`suite:${suite.id}`],
      };
      checkAnswersStayUnknown(slot, values, declaredChecks);
      const reference = { id: suite.id, version: suite.version, slot: slot.slot };
      const { id } = createPrompt(ctx, org, input, { suite: reference });
      return { promptId: id, title: input.title };
    });
    const target = { id: provider.id, name: provider.name };
    recordAudit(ctx, org, "suite.applied", target, changesOf({}, { suite: suite.id, version: suite.version }));
    return { prompts };
  });
}

/**
 * The task of a slot for a product. The title is filled now. The text and the end goal are filled by each run. Throws bad_request if a value is
 * missing.
 */
function filledSlot({ slot, title, text, endGoal }: SuiteSlot, values: Record<string, string>) {
  const missing = templateVarsOf(text, endGoal, title)?.find((name) => !Object.hasOwn(values, name));
  if (missing !== undefined) throw invalidField("values", `${slot} needs a value for ${missing}`);
  const variables = templateVarsOf(text, endGoal) ?? [];
  return {
    title: fillTemplate(title, values).slice(0, 200),
    text,
    endGoal,
    templateDefaults: Object.fromEntries(variables.map((name) => [name, values[name] ?? ""])),
  };
}

/** The checks of a slot for which all variables have a value. */
function filledChecks({ declaredChecks }: SuiteSlot, values: Record<string, string>): DeclaredCheck[] {
  const isFilled = (check: DeclaredCheck) =>
    (templateVarsOf(...textsOf(check)) ?? []).every((name) => Object.hasOwn(values, name));
  const fill = (text: string | undefined) => text && fillTemplate(text, values);
  return declaredChecks.filter(isFilled).map((check) => ({
    ...check,
    ...(check.url !== undefined && { url: fill(check.url) }),
    ...(check.command !== undefined && { command: fill(check.command) }),
    ...(check.contains !== undefined && { contains: fill(check.contains) }),
  }));
}

const textsOf = ({ url, command, contains }: DeclaredCheck) => [url ?? null, command ?? null, contains ?? null];

/** Throws bad_request if a task already contains what its check looks for. */
function checkAnswersStayUnknown(slot: SuiteSlot, values: Record<string, string>, checks: DeclaredCheck[]): void {
  const task = fillTemplate(`${slot.text}\n${slot.endGoal ?? ""}`, values).toLowerCase();
  for (const { file, contains } of checks)
    if (file !== undefined && contains !== undefined && task.includes(contains.toLowerCase()))
      throw invalidField(
        "values",
        `the task of ${slot.slot} already says ${JSON.stringify(contains)}, which its check looks for; choose a text that the agent has to find, or leave it out`,
      );
}

/** A prompt of a suite. `isChanged`: it differs from the suite, so its results are not comparable. */
export type Member = { prompt: PromptRow; slot: string; providerId: string; isChanged: boolean };

/** The prompts of a suite's version that are not archived, oldest first. */
export function listMembers({ db }: Context, org: OrgId, suite: Suite): Member[] {
  const rows = db
    .select()
    .from(prompts)
    .where(
      and(
        eq(prompts.orgId, org),
        ne(prompts.status, "archived"),
        isNotNull(prompts.suite),
        sql`json_extract(${prompts.suite}, '$.id') = ${suite.id} and json_extract(${prompts.suite}, '$.version') = ${suite.version}`,
      ),
    )
    .orderBy(asc(prompts.id))
    .all();
  return rows.flatMap((prompt): Member[] => {
    const slot = suite.slots.find((each) => each.slot === prompt.suite?.slot);
    const { targetProviderId } = prompt;
    if (slot === undefined || targetProviderId === null) return [];
    const isSame =
      prompt.text === slot.text &&
      prompt.endGoal === slot.endGoal &&
      prompt.workspace === null &&
      Bun.deepEquals(prompt.limits, suite.limits);
    return [{ prompt, slot: slot.slot, providerId: targetProviderId, isChanged: !isSame }];
  });
}
