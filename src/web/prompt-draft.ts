import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { AdditionalUrl } from "../db/tables.ts";
import { type AppError, badRequest } from "../errors.ts";
import { type Prompt, PromptInput, type WorkspaceSetup } from "../prompts/schema.ts";
import { templateVarsOf } from "../prompts/template.ts";
import { invalidInput } from "../schema.ts";

type UrlRow = { url: string; name: string; kind: string; more: string };
/** `expected`: the status of a response or the exit code of a command. `invariant`: `yes`, or empty. */
type CheckRow = { kind: string; target: string; expected: string; contains: string; invariant: string };

/** Values of the prompt form as typed, valid or not. */
export type Draft = {
  title: string;
  text: string;
  endGoal: string;
  /** Empty: manual. `cron`: the expression in `cron`. */
  frequency: string;
  cron: string;
  runsPerEval: string;
  targetProviderId: string;
  agent: string;
  model: string;
  reviewBeforePublishing: boolean;
  hasPublicBadge: boolean;
  /** Separated by commas or spaces. */
  tags: string;
  defaults: Record<string, string>;
  limits: Record<string, string>;
  urls: UrlRow[];
  checks: CheckRow[];
  /** By the name in `workspaceFields`. */
  workspace: Record<string, string>;
};

export const workspaceFields = ["archive", "repositoryUrl", "repositoryRef", "setup", "instructions", "env"] as const;

export const presets = ["hourly", "daily", "weekly", "monthly"] as const;
export const emptyUrl: UrlRow = { url: "", name: "", kind: "docs", more: "" };
export const checkKinds = ["url", "command", "file"] as const;
export const emptyCheck: CheckRow = { kind: "url", target: "", expected: "", contains: "", invariant: "" };

export const emptyDraft: Draft = {
  title: "",
  text: "",
  endGoal: "",
  frequency: "",
  cron: "",
  runsPerEval: "",
  targetProviderId: "",
  agent: "",
  model: "",
  reviewBeforePublishing: false,
  hasPublicBadge: false,
  tags: "",
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
  const urls: AdditionalUrl[] = prompt.additionalUrls ?? [];
  return {
    title: prompt.title ?? "",
    text: prompt.text,
    endGoal: prompt.endGoal ?? "",
    frequency: frequency === null ? "" : isPreset ? frequency : "cron",
    cron: frequency === null || isPreset ? "" : frequency,
    runsPerEval: prompt.runsPerEval === null ? "" : String(prompt.runsPerEval),
    targetProviderId: prompt.targetProviderId ?? "",
    agent: prompt.agent ?? "",
    model: prompt.model ?? "",
    reviewBeforePublishing: prompt.reviewBeforePublishing,
    hasPublicBadge: prompt.hasPublicBadge,
    tags: prompt.tags.join(", "),
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

/** Reads the submitted form. */
export function readDraft(form: URLSearchParams): Draft {
  // Browsers send line breaks as CRLF.
  const text = (name: string) => (form.get(name) ?? "").replaceAll("\r\n", "\n");
  const rows = <T extends Record<string, string>>(prefix: string, empty: T): T[] => {
    const columns = Object.keys(empty).map((name) => [name, form.getAll(`${prefix}.${name}`)] as const);
    const count = columns[0]?.[1].length ?? 0;
    return Array.from(
      { length: count },
      (_, i) => Object.fromEntries(columns.map(([name, values]) => [name, (values[i] ?? "").trim()])) as T,
    );
  };
  const named = (prefix: string): Record<string, string> =>
    Object.fromEntries(
      [...form].flatMap(([name, value]) =>
        name.startsWith(prefix) && value !== "" ? [[name.slice(prefix.length), value]] : [],
      ),
    );
  return {
    title: text("title"),
    text: text("text"),
    endGoal: text("endGoal"),
    frequency: text("frequency"),
    cron: text("cron").trim(),
    runsPerEval: text("runsPerEval").trim(),
    targetProviderId: text("targetProviderId"),
    agent: text("agent"),
    model: text("model").trim(),
    reviewBeforePublishing: form.has("reviewBeforePublishing"),
    hasPublicBadge: form.has("hasPublicBadge"),
    tags: text("tags"),
    defaults: named("default."),
    limits: named("limit."),
    urls: rows("url", emptyUrl),
    checks: rows("check", emptyCheck),
    workspace: named("workspace."),
  };
}

export const frequencyOf = ({ frequency, cron }: Draft): string | null =>
  frequency === "cron" ? cron : frequency || null;

/** Form fields that can show an error. */
export const fields = Object.keys(PromptInput.properties);

let compiled: TypeCheck<typeof PromptInput> | undefined;
const orNull = (text: string) => (text.trim() === "" ? null : text);
const toNumber = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text);

const toAmount = (text: string) => (/^\d{1,15}(\.\d{1,6})?$/.test(text.trim()) ? Number(text) : text);

/** The prompt input of a form. Throws bad_request with the field. */
export function toInput(draft: Draft): PromptInput {
  const names = templateVarsOf(draft.text, draft.endGoal) ?? [];
  const defaults = Object.entries(draft.defaults).filter(([name]) => names.includes(name));
  const limits = Object.entries(draft.limits);
  const urls = draft.urls.filter(({ url }) => url !== "");
  const checks = draft.checks.filter(({ target }) => target !== "");
  const input = {
    title: orNull(draft.title),
    text: draft.text,
    endGoal: orNull(draft.endGoal),
    frequency: frequencyOf(draft),
    runsPerEval: draft.runsPerEval === "" ? null : toNumber(draft.runsPerEval),
    targetProviderId: orNull(draft.targetProviderId),
    agent: orNull(draft.agent),
    model: orNull(draft.model),
    reviewBeforePublishing: draft.reviewBeforePublishing,
    hasPublicBadge: draft.hasPublicBadge,
    tags: [...new Set(draft.tags.split(/[\s,]+/).filter((tag) => tag !== ""))],
    templateDefaults: defaults.length === 0 ? null : Object.fromEntries(defaults),
    limits: limits.length === 0 ? null : Object.fromEntries(limits.map(([name, value]) => [name, toAmount(value)])),
    additionalUrls: urls.length === 0 ? null : urls.map(toUrl),
    declaredChecks: checks.length === 0 ? null : checks.map(toCheck),
    workspace: toWorkspace(draft.workspace),
  };
  compiled ??= TypeCompiler.Compile(PromptInput);
  if (compiled.Check(input)) return input;
  const wrong = compiled.Errors(input).First();
  throw wrong ? invalidInput(wrong, "form") : badRequest("The form is not valid.");
}

function toCheck({ kind, target, expected, contains, invariant }: CheckRow) {
  return {
    [checkKinds.find((each) => each === kind) ?? "url"]: target,
    ...(expected === "" ? {} : { [kind === "command" ? "exitCode" : "status"]: toNumber(expected) }),
    ...(contains === "" ? {} : { contains }),
    ...(invariant === "" ? {} : { invariant: true }),
  };
}

/** Variables are lines of NAME=value. */
function toWorkspaceDraft(workspace: WorkspaceSetup | null): Record<string, string> {
  if (workspace === null) return {};
  const { repository, env = {}, archive = "", setup = "", instructions = "" } = workspace;
  const lines = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const { url = "", ref = "" } = repository ?? {};
  return { archive, repositoryUrl: url, repositoryRef: ref, setup, instructions, env: lines.join("\n") };
}

function toWorkspace(draft: Record<string, string>): object | null {
  const text = (name: (typeof workspaceFields)[number]) => (draft[name] ?? "").replaceAll("\r\n", "\n").trim();
  const [archive, url, ref, setup, instructions] = workspaceFields.map(text);
  const env = text("env")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => [line.split("=")[0]?.trim(), line.includes("=") ? line.slice(line.indexOf("=") + 1) : null]);
  const workspace = {
    ...(archive && { archive }),
    ...((url || ref) && { repository: { url, ref } }),
    ...(setup && { setup }),
    ...(env.length > 0 && { env: Object.fromEntries(env) }),
    ...(instructions && { instructions }),
  };
  return Object.keys(workspace).length === 0 ? null : workspace;
}

function toUrl({ url, name, kind, more }: UrlRow): AdditionalUrl {
  return { ...readMore(more), url, ...(name && { name }), ...(kind && { kind }) };
}

/** Extra properties of a URL that the form has no input for; they pass through unchanged. */
function readMore(json: string): object {
  try {
    const value: unknown = json === "" ? {} : JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** Which field of a form an error belongs to, and what to show there. `field` empty: the whole form. */
export function toFault(error: AppError, fields: readonly string[]): { field: string; message: string } {
  const [field = "", ...place] = error.field?.split(".") ?? [];
  if (!fields.includes(field) || error.problem === undefined) return { field: "", message: capital(error.detail) };
  const row = /^\d+$/.test(place[0] ?? "") ? `Row ${Number(place[0]) + 1}` : place.join(".");
  return { field, message: `${row && `${row}: `}${capital(error.problem)}.` };
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
