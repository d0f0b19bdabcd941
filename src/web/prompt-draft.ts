import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { AdditionalUrl } from "../db/tables/prompts.ts";
import { badRequest, invalidField } from "../errors.ts";
import { maxAgents } from "../prompts/agent-schema.ts";
import { maxChecks, maxUrls, type Prompt, PromptInput } from "../prompts/schema.ts";
import { templateVarsOf } from "../prompts/template.ts";
import { checkHttpUrl, invalidInput } from "../schema.ts";
import { readMore } from "./more-fields.ts";
import { toWorkspace, toWorkspaceDraft } from "./workspace-draft.ts";

type AgentRow = { agent: string; model: string };
type UrlRow = { url: string; name: string; kind: string; more: string };
/** `expected`: the status of a response or the exit code of a command. `invariant`: `yes`, or empty. */
type CheckRow = { kind: string; target: string; expected: string; contains: string; invariant: string };

/** Values of the prompt form as typed, valid or not. */
export type Draft = {
  /** Stored as the first start URL. */
  docsUrl: string;
  title: string;
  text: string;
  endGoal: string;
  /** One wording per line. */
  wordings: string;
  /** Empty: manual. `cron`: the expression in `cron`. */
  frequency: string;
  cron: string;
  runsPerEval: string;
  targetProviderId: string;
  agent: string;
  model: string;
  /** Further agents. */
  also: AgentRow[];
  reviewBeforePublishing: boolean;
  hasPublicBadge: boolean;
  /** Scope and minimum score of the success bar; an empty scope: none. */
  successScope: string;
  successScore: string;
  supersedesByDefault: boolean;
  isOnResultsPage: boolean;
  /** Separated by commas or spaces. */
  tags: string;
  workerLabels: string;
  defaults: Record<string, string>;
  limits: Record<string, string>;
  urls: UrlRow[];
  checks: CheckRow[];
  /** By the name in `workspaceFields`. */
  workspace: Record<string, string>;
};

export const presets = ["hourly", "daily", "weekly", "monthly"] as const;
export const emptyUrl: UrlRow = { url: "", name: "", kind: "docs", more: "" };
export const emptyAgent: AgentRow = { agent: "", model: "" };
export const checkKinds = ["url", "command", "file"] as const;
export const emptyCheck: CheckRow = { kind: "url", target: "", expected: "", contains: "", invariant: "" };

export const emptyDraft: Draft = {
  docsUrl: "",
  title: "",
  text: "",
  endGoal: "",
  wordings: "",
  frequency: "",
  cron: "",
  runsPerEval: "",
  targetProviderId: "",
  agent: "",
  model: "",
  also: [],
  reviewBeforePublishing: false,
  hasPublicBadge: false,
  successScope: "",
  successScore: "",
  supersedesByDefault: false,
  isOnResultsPage: false,
  tags: "",
  workerLabels: "",
  defaults: {},
  limits: {},
  urls: [],
  checks: [],
  workspace: {},
};

/** Form values of a prompt. */
export function toDraft(prompt: Prompt): Draft {
  const { frequency } = prompt;
  const isPreset = presets.some((preset) => preset === frequency);
  const { docsUrl, urls } = splitUrls(prompt.additionalUrls ?? []);
  return {
    docsUrl,
    title: prompt.title ?? "",
    text: prompt.text,
    endGoal: prompt.endGoal ?? "",
    wordings: prompt.wordings?.map(oneLine).join("\n") ?? "",
    frequency: frequency === null ? "" : isPreset ? frequency : "cron",
    cron: frequency === null || isPreset ? "" : frequency,
    runsPerEval: prompt.runsPerEval === null ? "" : String(prompt.runsPerEval),
    targetProviderId: prompt.targetProviderId ?? "",
    agent: prompt.agent ?? "",
    model: prompt.model ?? "",
    also: (prompt.agents ?? []).slice(1).map(({ agent, model }) => ({ agent, model: model ?? "" })),
    reviewBeforePublishing: prompt.reviewBeforePublishing,
    hasPublicBadge: prompt.hasPublicBadge,
    successScope: prompt.successBar?.scope ?? "",
    successScore: String(prompt.successBar?.minScore ?? ""),
    supersedesByDefault: prompt.supersedesByDefault,
    isOnResultsPage: prompt.isOnResultsPage,
    tags: prompt.tags.join(", "),
    workerLabels: prompt.workerLabels.join(", "),
    defaults: prompt.templateDefaults ?? {},
    limits: Object.fromEntries(
      Object.entries(prompt.limits ?? {}).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])),
    ),
    urls: urls.map(({ url, name, kind, ...more }) => ({
      url,
      name: typeof name === "string" ? name : "",
      kind: typeof kind === "string" ? kind : "",
      more: Object.keys(more).length === 0 ? "" : JSON.stringify(more),
    })),
    checks: (prompt.declaredChecks ?? []).map((check) => ({
      kind: checkKinds.find((kind) => check[kind] !== undefined) ?? "url",
      target: check.url ?? check.command ?? check.file ?? "",
      expected: String(check.status ?? check.exitCode ?? ""),
      contains: check.contains ?? "",
      invariant: check.invariant ? "yes" : "",
    })),
    workspace: toWorkspaceDraft(prompt.workspace),
  };
}

/** The docs URL is the first start URL, if it has no name and no fields of its own. */
function splitUrls(all: AdditionalUrl[]): { docsUrl: string; urls: AdditionalUrl[] } {
  const [first, ...rest] = all;
  const isDocs = first?.kind === "docs" && Object.keys(first).length === 2;
  return isDocs ? { docsUrl: first.url, urls: rest } : { docsUrl: "", urls: all };
}

/** The field of a prompt that rows belong to, and how many of them it may have. */
type Rows = { field: string; most: number };

/** Reads the submitted form, without empty rows. Throws bad_request for far more rows than a prompt may have. */
export function readDraft(form: URLSearchParams): Draft {
  // Browsers send line breaks as CRLF.
  const text = (name: string) => (form.get(name) ?? "").replaceAll("\r\n", "\n");
  const rows = <T extends Record<string, string>>(prefix: string, empty: T, key: keyof T, list: Rows): T[] => {
    const columns = Object.keys(empty).map((name) => [name, form.getAll(`${prefix}.${name}`)] as const);
    const count = columns[0]?.[1].length ?? 0;
    const filled = Array.from(
      { length: count },
      (_, i) => Object.fromEntries(columns.map(([name, values]) => [name, (values[i] ?? "").trim()])) as T,
    ).filter((row) => row[key] !== "");
    // With one more, the form shows the error.
    if (filled.length > list.most + 1) throw invalidField(list.field, `must not have more than ${list.most} items`);
    return filled;
  };
  const named = (prefix: string): Record<string, string> =>
    Object.fromEntries(
      [...form].flatMap(([name, value]) =>
        name.startsWith(prefix) && value !== "" ? [[name.slice(prefix.length), value]] : [],
      ),
    );
  return {
    docsUrl: text("docsUrl").trim(),
    title: text("title"),
    text: text("text"),
    endGoal: text("endGoal"),
    wordings: text("wordings"),
    frequency: text("frequency"),
    cron: text("cron").trim(),
    runsPerEval: text("runsPerEval").trim(),
    targetProviderId: text("targetProviderId"),
    agent: text("agent"),
    model: text("model").trim(),
    also: rows("also", emptyAgent, "agent", { field: "agents", most: maxAgents - 1 }),
    reviewBeforePublishing: form.has("reviewBeforePublishing"),
    hasPublicBadge: form.has("hasPublicBadge"),
    successScope: text("successScope"),
    successScore: text("successScore").trim(),
    supersedesByDefault: form.has("supersedesByDefault"),
    isOnResultsPage: form.has("isOnResultsPage"),
    tags: text("tags"),
    workerLabels: text("workerLabels"),
    defaults: named("default."),
    limits: named("limit."),
    urls: rows("url", emptyUrl, "url", { field: "additionalUrls", most: maxUrls }),
    checks: rows("check", emptyCheck, "target", { field: "declaredChecks", most: maxChecks }),
    workspace: named("workspace."),
  };
}

export const frequencyOf = ({ frequency, cron }: Draft): string | null =>
  frequency === "cron" ? cron : frequency || null;

/** Form fields that can show an error. */
export const fields = ["docsUrl", ...Object.keys(PromptInput.properties)];

let compiled: TypeCheck<typeof PromptInput> | undefined;
const oneLine = (text: string) => text.replace(/\s+/g, " ").trim();
const wordsOf = (text: string) => [...new Set(text.split(/[\s,]+/).filter((word) => word !== ""))];
const orNull = (text: string) => (text.trim() === "" ? null : text);
const toNumber = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text);

const toAmount = (text: string) => (/^\d{1,15}(\.\d{1,6})?$/.test(text.trim()) ? Number(text) : text);

/** The prompt input of a form. Throws bad_request with the field. */
export function toInput(draft: Draft): PromptInput {
  const names = new Set(templateVarsOf(draft.text, draft.endGoal));
  const defaults = Object.entries(draft.defaults).filter(([name]) => names.has(name));
  const limits = Object.entries(draft.limits);
  const wordings = draft.wordings
    .split("\n")
    .map(oneLine)
    .filter((wording) => wording !== "");
  const input = {
    title: orNull(draft.title),
    text: draft.text,
    endGoal: orNull(draft.endGoal),
    wordings: wordings.length === 0 ? null : wordings,
    frequency: frequencyOf(draft),
    runsPerEval: draft.runsPerEval === "" ? null : toNumber(draft.runsPerEval),
    targetProviderId: orNull(draft.targetProviderId),
    agent: orNull(draft.agent),
    model: orNull(draft.model),
    agents: toAgents(draft),
    reviewBeforePublishing: draft.reviewBeforePublishing,
    hasPublicBadge: draft.hasPublicBadge,
    successBar:
      draft.successScope === "" ? null : { scope: draft.successScope, minScore: toAmount(draft.successScore) },
    supersedesByDefault: draft.supersedesByDefault,
    isOnResultsPage: draft.isOnResultsPage,
    tags: wordsOf(draft.tags),
    workerLabels: wordsOf(draft.workerLabels),
    templateDefaults: defaults.length === 0 ? null : Object.fromEntries(defaults),
    limits: limits.length === 0 ? null : Object.fromEntries(limits.map(([name, value]) => [name, toAmount(value)])),
    additionalUrls: draft.urls.length === 0 ? null : draft.urls.map(toUrl),
    declaredChecks: draft.checks.length === 0 ? null : draft.checks.map(toCheck),
    workspace: toWorkspace(draft.workspace),
  };
  compiled ??= TypeCompiler.Compile(PromptInput);
  if (draft.docsUrl !== "") checkHttpUrl("docsUrl", draft.docsUrl);
  // Added after the check, so that errors name the row of the form.
  const docs = draft.docsUrl === "" ? [] : [{ url: draft.docsUrl, kind: "docs" }];
  if (compiled.Check(input))
    return docs.length === 0 ? input : { ...input, additionalUrls: [...docs, ...(input.additionalUrls ?? [])] };
  const wrong = compiled.Errors(input).First();
  throw wrong ? invalidInput(wrong, "form") : badRequest("The form is not valid.");
}

/** null: at most one agent. */
function toAgents({ agent, model, also }: Draft): object[] | null {
  if (also.length === 0) return null;
  if (agent === "") throw invalidField("agent", "choose an agent before you add further ones");
  return [{ agent, model }, ...also].map((row) => ({ agent: row.agent, model: orNull(row.model) }));
}

function toCheck({ kind, target, expected, contains, invariant }: CheckRow) {
  return {
    [checkKinds.find((each) => each === kind) ?? "url"]: target,
    ...(expected === "" ? {} : { [kind === "command" ? "exitCode" : "status"]: toNumber(expected) }),
    ...(contains === "" ? {} : { contains }),
    ...(invariant === "" ? {} : { invariant: true }),
  };
}

function toUrl({ url, name, kind, more }: UrlRow): AdditionalUrl {
  return { ...readMore(more), url, ...(name && { name }), ...(kind && { kind }) };
}
