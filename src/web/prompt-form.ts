import { Type } from "@sinclair/typebox";
import { frequencyProblem } from "../cron.ts";
import type { AdditionalUrl, PromptAgent } from "../db/tables/prompts.ts";
import { invalidField } from "../errors.ts";
import { AgentOptions, maxAgents } from "../prompts/agent-schema.ts";
import { findTimeOfDay, toFrequency } from "../prompts/frequency.ts";
import { maxChecks, maxUrls, type Prompt, PromptInput } from "../prompts/schema.ts";
import { templateVarsOf } from "../prompts/template.ts";
import { checkHttpUrl, HttpUrl } from "../schema.ts";
import { checkColumns, toCheck, toCheckRow } from "./check-rows.ts";
import {
  assignments,
  checkInput,
  type Format,
  type Formats,
  lines,
  readFields,
  toFields,
  verbatim,
} from "./form-values.ts";

/** The fields of the form for a prompt, besides its rows. */
export const PromptForm = Type.Object({
  ...Type.Omit(PromptInput, ["status", "isCanary", "baselineRequestId", "agents", "additionalUrls", "declaredChecks"])
    .properties,
  docsUrl: Type.Optional(HttpUrl("Stored as the first start URL")),
  cron: Type.Optional(Type.String({ maxLength: 200, description: "The frequency, if that is cron" })),
  time: Type.Optional(Type.String({ maxLength: 5, description: "Time of day, if the frequency has one" })),
  weekday: Type.Optional(Type.String({ maxLength: 10, description: "Day of the week, if the frequency has one" })),
});

/** Fields that can show an error. */
export const promptFields = [...Object.keys(PromptForm.properties), "agents", "additionalUrls", "declaredChecks"];

/** Pasted configuration often includes the object around the servers. */
const mcpServers: Format = {
  read: (text) => {
    try {
      const value = JSON.parse(text);
      return value?.mcpServers ?? value;
    } catch {
      throw invalidField("workspace.mcpServers", "must be JSON");
    }
  },
  write: (servers: object) => JSON.stringify(servers, null, 2),
};

const formats = {
  title: verbatim,
  text: verbatim,
  endGoal: verbatim,
  wordings: lines,
  "workspace.env": assignments,
  "workspace.mcpServers": mcpServers,
};

/**
 * The options of an agent. Each agent has an input for each option. The names of the inputs start with `options.` for the first agent, and with
 * `furtherAgent.` for the others.
 */
const agentOptionNames = ["effort", "permissions", "webSearch", "login", "systemPrompt", "args", "env"] as const;
/** The texts in the inputs of an agent's options. */
export type OptionTexts = Record<(typeof agentOptionNames)[number], string>;
const optionFormats: Formats = { systemPrompt: verbatim, args: lines, env: assignments };

/** The options of the first agent. */
export const optionTextsOf = (form: URLSearchParams): OptionTexts =>
  Object.fromEntries(agentOptionNames.map((name) => [name, form.get(`options.${name}`) ?? ""])) as OptionTexts;

function toOptionTexts(options: PromptAgent["options"] = {}): OptionTexts {
  const fields = toFields(AgentOptions, options, optionFormats);
  return Object.fromEntries(agentOptionNames.map((name) => [name, fields.get(name) ?? ""])) as OptionTexts;
}

/** undefined if all options are the defaults of the agent. */
function toOptions(texts: OptionTexts): object | undefined {
  const filledFields = agentOptionNames.filter((name) => texts[name].trim() !== "").map((name) => [name, texts[name]]);
  // The defaults are no web search and no login, so these values are left out.
  const { webSearch, login, ...options } = readFields(AgentOptions, new URLSearchParams(filledFields), optionFormats);
  const changedOptions = { ...options, ...(webSearch === true && { webSearch }), ...(login === true && { login }) };
  return Object.keys(changedOptions).length === 0 ? undefined : changedOptions;
}

/**
 * The rows of the form: additional agents, start URLs and checks. A row is empty if its first column is empty. `more`: properties of a URL that have
 * no input, as JSON.
 */
const tables = {
  furtherAgent: { columns: ["agent", "model", ...agentOptionNames], field: "agents", maxRows: maxAgents - 1 },
  url: { columns: ["url", "name", "kind", "more"], field: "additionalUrls", maxRows: maxUrls },
  check: { columns: checkColumns, field: "declaredChecks", maxRows: maxChecks },
} as const;

type Table = keyof typeof tables;
type TableRow<T extends Table> = Record<(typeof tables)[T]["columns"][number], string>;

/** The rows that were filled in. */
export function rowsOf<T extends Table>(form: URLSearchParams, table: T): TableRow<T>[] {
  const { columns, field, maxRows } = tables[table];
  const values = columns.map((column) => form.getAll(`${table}.${column}`));
  const rows = (values[0] ?? []).flatMap((first, i) =>
    first.trim() === ""
      ? []
      : [Object.fromEntries(columns.map((column, j) => [column, (values[j]?.[i] ?? "").trim()]))],
  );
  // One row too many is left to validation, which shows the form again with the error.
  if (rows.length > maxRows + 1) throw invalidField(field, `must not have more than ${maxRows} items`);
  return rows as TableRow<T>[];
}

/** Throws bad_request for far more rows than a prompt may have. Called before the rows are rendered. */
export function checkRows(form: URLSearchParams): void {
  for (const table of Object.keys(tables) as Table[]) rowsOf(form, table);
}

function addRows<T extends Table>(form: URLSearchParams, table: T, rows: TableRow<T>[]): void {
  for (const row of rows)
    for (const [column, value] of Object.entries<string>(row)) form.append(`${table}.${column}`, value);
}

export const frequencyPresets = ["hourly", "daily", "weekly", "monthly"] as const;

/** Turns a prompt into the fields of the form. */
export function toPromptFields(prompt: Prompt): URLSearchParams {
  const { frequency, agents, declaredChecks } = prompt;
  const urls: AdditionalUrl[] = prompt.additionalUrls ?? [];
  const [first, ...rest] = urls;
  // The first start URL becomes the docs URL if it has no name and no other properties.
  const isDocsUrl = first?.kind === "docs" && Object.keys(first).length === 2;
  const form = toFields(
    PromptForm,
    { ...prompt, ...(isDocsUrl && { docsUrl: first.url }), ...toFrequencyFields(frequency) },
    formats,
  );
  addRows(
    form,
    "furtherAgent",
    (agents ?? []).slice(1).map(({ agent, model, options }) => ({
      agent,
      model: model ?? "",
      ...toOptionTexts(options),
    })),
  );
  for (const [name, text] of Object.entries(toOptionTexts(agents?.[0]?.options))) form.set(`options.${name}`, text);
  addRows(
    form,
    "url",
    (isDocsUrl ? rest : urls).map(({ url, name, kind, ...more }) => ({
      url,
      name: typeof name === "string" ? name : "",
      kind: typeof kind === "string" ? kind : "",
      more: Object.keys(more).length === 0 ? "" : JSON.stringify(more),
    })),
  );
  addRows(form, "check", (declaredChecks ?? []).map(toCheckRow));
  return form;
}

/** The frequencies that have a time of day. */
export const timedFrequencies = {
  "daily-at": "Every day at",
  "weekdays-at": "Weekdays at",
  "weekly-at": "Every week at",
};

/** Turns a stored frequency into the fields of the form. */
function toFrequencyFields(frequency: string | null): Record<string, string> {
  if (frequency === null || frequencyPresets.some((preset) => preset === frequency)) return {};
  const timeOfDay = findTimeOfDay(frequency);
  if (timeOfDay === null) return { frequency: "cron", cron: frequency };
  const { every, time, weekday } = timeOfDay;
  if (every === "week") return { frequency: "weekly-at", time, weekday };
  return { frequency: every === "day" ? "daily-at" : "weekdays-at", time };
}

/** null: the prompt runs only on demand. Empty text: the cron expression is missing. */
export function frequencyOf(form: URLSearchParams): string | null {
  const frequency = form.get("frequency") ?? "";
  if (frequency === "cron") return (form.get("cron") ?? "").trim();
  const time = form.get("time") || "06:00";
  if (frequency === "daily-at") return toFrequency(`daily at ${time}`);
  if (frequency === "weekdays-at") return toFrequency(`weekdays at ${time}`);
  if (frequency === "weekly-at") return toFrequency(`${form.get("weekday") || "monday"} at ${time}`);
  return frequency || null;
}

/** Variables in the task and the end goal; null: none. */
export const variablesIn = (form: URLSearchParams): string[] | null =>
  templateVarsOf(form.get("text") ?? "", form.get("endGoal") ?? "");

/** The prompt that a form describes. Throws bad_request that names the field. */
export function toPromptInput(form: URLSearchParams): PromptInput {
  // `cron`, `time` and `weekday` are only parts of the frequency.
  const { docsUrl, cron: _, time: _time, weekday: _weekday, ...fields } = readFields(PromptForm, form, formats);
  const defaults = (variablesIn(form) ?? []).flatMap((name) => {
    const value = form.get(`templateDefaults.${name}`) ?? "";
    return value === "" ? [] : [[name, value]];
  });
  const [urls, checks] = [rowsOf(form, "url"), rowsOf(form, "check")];
  const input = {
    ...fields,
    frequency: frequencyOf(form),
    ...(fields.catchUp !== "window" && { catchUpHours: null }),
    agents: toAgents(form),
    successBar: form.get("successBar.scope") ? fields.successBar : null,
    templateDefaults: defaults.length === 0 ? null : Object.fromEntries(defaults),
    additionalUrls: urls.length === 0 ? null : urls.map(toUrl),
    declaredChecks: checks.length === 0 ? null : checks.map(toCheck),
  };
  if (typeof docsUrl === "string") checkHttpUrl("docsUrl", docsUrl);
  checkCron(form);
  const validInput = checkInput(PromptInput, input);
  if (typeof docsUrl !== "string") return validInput;
  // Added after the check, so that errors name the row of the form.
  const docs: AdditionalUrl = { url: docsUrl, kind: "docs" };
  return { ...validInput, additionalUrls: [docs, ...(validInput.additionalUrls ?? [])] };
}

/** Throws bad_request for the field with the cron expression. */
function checkCron(form: URLSearchParams): void {
  if (form.get("frequency") !== "cron") return;
  const problem = frequencyProblem(frequencyOf(form) ?? "");
  if (problem !== null) throw invalidField("cron", problem);
}

/** null if there is one agent without options. */
function toAgents(form: URLSearchParams): object[] | null {
  const furtherAgents = rowsOf(form, "furtherAgent");
  const options = toOptions(optionTextsOf(form));
  if (furtherAgents.length === 0 && options === undefined) return null;
  const agent = form.get("agent") ?? "";
  const model = form.get("model")?.trim() || null;
  if (agent === "")
    throw invalidField("agent", `choose an agent before you ${options ? "set its options" : "add further ones"}`);
  return [
    { agent, model, ...(options && { options }) },
    ...furtherAgents.map((row) => {
      const rowOptions = toOptions(row);
      return { agent: row.agent, model: row.model || null, ...(rowOptions && { options: rowOptions }) };
    }),
  ];
}

const toUrl = ({ url, name, kind, more }: TableRow<"url">) => ({
  ...toProperties(more),
  url,
  ...(name && { name }),
  ...(kind && { kind }),
});

/** Parses the properties of a URL that have no input. They are kept unchanged. */
function toProperties(json: string): object {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** A field with different values. An empty text means that it has no value. */
export type Difference = { field: string; stored: string; typed: string };

/** Fields of the form whose stored and typed values differ. */
export function differencesOf(stored: URLSearchParams, typed: URLSearchParams): Difference[] {
  const isField = (name: string) => Object.hasOwn(tables, groupOf(name)) || promptFields.includes(groupOf(name));
  const valueIn = (form: URLSearchParams, name: string) =>
    form
      .getAll(name)
      .map((value) => value.replaceAll("\r\n", "\n").trim())
      .filter((value) => value !== "")
      .join("\n");
  return [...new Set([...stored.keys(), ...typed.keys()])]
    .filter(isField)
    .map((field) => ({ field, stored: valueIn(stored, field), typed: valueIn(typed, field) }))
    .filter((difference) => difference.stored !== difference.typed);
}

const groupOf = (name: string): string => name.split(".")[0] ?? "";
