import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { AdditionalUrl } from "../db/tables.ts";
import { type AppError, badRequest } from "../errors.ts";
import { type Prompt, PromptInput } from "../prompts/schema.ts";
import { templateVarsOf } from "../prompts/template.ts";
import { explain } from "../schema.ts";

type UrlRow = { url: string; name: string; kind: string; more: string };
type CheckRow = { url: string; status: string; contains: string };

/** What stands in the form of a prompt: texts as they were typed, right or wrong. */
export type Draft = {
  title: string;
  text: string;
  endGoal: string;
  /** Empty: by hand only; `cron`: as the expression says. */
  frequency: string;
  cron: string;
  runsPerEval: string;
  targetProviderId: string;
  agent: string;
  model: string;
  reviewBeforePublishing: boolean;
  defaults: Record<string, string>;
  limits: Record<string, string>;
  urls: UrlRow[];
  checks: CheckRow[];
};

export const presets = ["hourly", "daily", "weekly", "monthly"] as const;
export const emptyUrl: UrlRow = { url: "", name: "", kind: "docs", more: "" };
export const emptyCheck: CheckRow = { url: "", status: "", contains: "" };

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
  defaults: {},
  limits: {},
  urls: [],
  checks: [],
};

/** A prompt as it stands in its form. */
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
    checks: (prompt.declaredChecks ?? []).map(({ url, status, contains }) => ({
      url,
      status: status === undefined ? "" : String(status),
      contains: contains ?? "",
    })),
  };
}

/** What was sent of the form. */
export function readDraft(form: URLSearchParams): Draft {
  // A browser sends the line ends of a text as CRLF.
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
    defaults: named("default."),
    limits: named("limit."),
    urls: rows("url", emptyUrl),
    checks: rows("check", emptyCheck),
  };
}

export const frequencyOf = ({ frequency, cron }: Draft): string | null =>
  frequency === "cron" ? cron : frequency || null;

/** The fields of the form, beside which an error may stand. */
export const fields = Object.keys(PromptInput.properties);

let compiled: TypeCheck<typeof PromptInput> | undefined;
const orNull = (text: string) => (text.trim() === "" ? null : text);
const toNumber = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text);

const toAmount = (text: string) => (/^\d{1,15}(\.\d{1,6})?$/.test(text.trim()) ? Number(text) : text);

/** What a form asks for. Throws bad_request that names the field. */
export function toInput(draft: Draft): PromptInput {
  const names = templateVarsOf(draft.text, draft.endGoal) ?? [];
  const defaults = Object.entries(draft.defaults).filter(([name]) => names.includes(name));
  const limits = Object.entries(draft.limits);
  const urls = draft.urls.filter(({ url }) => url !== "");
  const checks = draft.checks.filter(({ url }) => url !== "");
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
    templateDefaults: defaults.length === 0 ? null : Object.fromEntries(defaults),
    limits: limits.length === 0 ? null : Object.fromEntries(limits.map(([name, value]) => [name, toAmount(value)])),
    additionalUrls: urls.length === 0 ? null : urls.map(toUrl),
    declaredChecks:
      checks.length === 0
        ? null
        : checks.map(({ url, status, contains }) => ({
            url,
            ...(status === "" ? {} : { status: toNumber(status) }),
            ...(contains === "" ? {} : { contains }),
          })),
  };
  compiled ??= TypeCompiler.Compile(PromptInput);
  if (compiled.Check(input)) return input;
  const wrong = compiled.Errors(input).First();
  throw badRequest(wrong ? explain(wrong, "the form") : "the form is not valid");
}

function toUrl({ url, name, kind, more }: UrlRow): AdditionalUrl {
  return { ...readMore(more), url, ...(name && { name }), ...(kind && { kind }) };
}

/** What a prompt keeps of an address beside what the form knows; it goes through the form as it is. */
function readMore(json: string): object {
  try {
    const value: unknown = json === "" ? {} : JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** Where an error belongs in a form, and its words there. `field` empty: to all of it. */
export function toFault(error: AppError, fields: readonly string[]): { field: string; message: string } {
  const [, field = "", place = "", rest = ""] = /^([A-Za-z]+)((?:\.\w+)*):? ([\s\S]*)$/.exec(error.detail) ?? [];
  if (!fields.includes(field)) return { field: "", message: capital(error.detail) };
  const row = /^\.(\d+)/.exec(place)?.[1];
  const where = row === undefined ? place.slice(1) : `Row ${Number(row) + 1}`;
  const words = rest.replace("templateDefaults", "a default").replace(/^is required: it /, "");
  return { field, message: `${where && `${where}: `}${capital(words)}.` };
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
