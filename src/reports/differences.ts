import type { Scope } from "../grading/grade.ts";

/** The properties that must be equal for runs to be comparable. The urlMap isn't one of them, because a comparison may be between two urlMaps. */
export type Comparand = {
  promptId: string;
  agent: string;
  /** null: the run has no report. */
  agentVersion: string | null;
  model: string | null;
  /** null: the workspace was empty. */
  contextDigest: string | null;
  templateArgs: Record<string, string> | null;
  /** null: the run has no report. */
  methodology: { id: string; hash: string; judge: string | null } | null;
  /** The scope according to `comparedScope`; null: the run has no report. */
  scope: Scope | null;
};

/** The scope of a report in comparisons. If a judge could not decide whether the goal was met, the run still counts as one whose goal was tested. */
export const comparedScope = ({ scope, judge }: { scope: Scope; judge: string | null }): Scope =>
  scope === "conduct_only" && judge !== null ? "goal" : scope;

const fields = ["prompt", "agent", "agentVersion", "model", "context", "methodology", "scope", "templateArgs"] as const;
export type Difference = { field: (typeof fields)[number]; before: string[]; after: string[] };

const readers: Record<Difference["field"], (run: Comparand) => string | null> = {
  prompt: ({ promptId }) => promptId,
  agent: ({ agent }) => agent,
  agentVersion: ({ agentVersion }) => agentVersion,
  model: ({ model }) => model ?? "none",
  context: ({ contextDigest }) => contextDigest ?? "none",
  methodology: ({ methodology }) => methodology && describeMethodology(methodology),
  scope: ({ scope }) => scope,
  templateArgs: ({ templateArgs }) => argsKey(templateArgs),
};

/** A short description of a methodology: its ID, the beginning of its hash, and its judge. */
export const describeMethodology = ({ id, hash, judge }: { id: string; hash: string; judge: string | null }): string =>
  `${id} ${hash.slice(0, 8)}${judge ? ` ${judge}` : ""}`;

/** Template arguments as text. The order of the arguments doesn't matter. */
export const argsKey = (args: Record<string, string> | null): string =>
  JSON.stringify(Object.entries(args ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));

/**
 * Why groups of runs aren't comparable: the properties with different values. Runs with the same prompt and template arguments are paired, so a group
 * may contain several prompts, or one prompt with several template arguments. `before` contains the values of the first group, `after` the values of
 * the others.
 */
export function differencesOf(groups: Comparand[][]): Difference[] {
  const valuesOf = (field: Difference["field"], runs: Comparand[]) =>
    [...new Set(runs.map(readers[field]))].filter((value) => value !== null);
  const hasSeveralPrompts = groups.some((runs) => valuesOf("prompt", runs).length > 1);
  const argsOfGroups = groups.map((runs) => String(valuesOf("templateArgs", runs).toSorted()));
  const isPaired = { prompt: hasSeveralPrompts, templateArgs: hasSeveralPrompts || new Set(argsOfGroups).size === 1 };
  return fields.flatMap((field) => {
    if ((field === "prompt" || field === "templateArgs") && isPaired[field]) return [];
    const values = groups.map((runs) => valuesOf(field, runs));
    if (new Set(values.flat()).size < 2) return [];
    const [before = [], ...rest] = values;
    return [{ field, before, after: [...new Set(rest.flat())] }];
  });
}

const agentFields: Difference["field"][] = ["agent", "agentVersion", "model", "context"];

/** Whether the only difference is that each side has its own agent, version, model or context. */
export const isAgentDifference = ({ field, before, after }: Difference): boolean =>
  agentFields.includes(field) && before.length === 1 && after.length === 1;

/** For example `model: openai/gpt-5 vs. anthropic/claude-opus-4-8`. */
export const describeDifference = ({ field, before, after }: Difference): string =>
  `${field}: ${[...new Set([...before, ...after])].join(" vs. ")}`;
