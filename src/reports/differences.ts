import type { Scope } from "../grading/grade.ts";

/** What must be the same for two runs to mean the same. The urlMap does not: it is what is compared. */
export type Comparand = {
  promptId: string;
  agent: string;
  model: string | null;
  templateArgs: Record<string, string> | null;
  /** null: the run has no report. */
  methodology: { id: string; hash: string; judge: string | null } | null;
  /** As `comparedScope` has it; null: the run has no report. */
  scope: Scope | null;
};

/** The scope in which a report is compared: a goal that a judge left unclear was tested, and is not proven. */
export const comparedScope = ({ scope, judge }: { scope: Scope; judge: string | null }): Scope =>
  scope === "conduct_only" && judge !== null ? "goal" : scope;

const fields = ["prompt", "agent", "model", "methodology", "scope", "templateArgs"] as const;
export type Difference = { field: (typeof fields)[number]; before: string[]; after: string[] };

const readers: Record<Difference["field"], (run: Comparand) => string | null> = {
  prompt: ({ promptId }) => promptId,
  agent: ({ agent }) => agent,
  model: ({ model }) => model ?? "none",
  methodology: ({ methodology }) => methodology && methodologyWords(methodology),
  scope: ({ scope }) => scope,
  templateArgs: ({ templateArgs }) => argsKey(templateArgs),
};

export const methodologyWords = ({ id, hash, judge }: { id: string; hash: string; judge: string | null }): string =>
  `${id} ${hash.slice(0, 8)}${judge ? ` ${judge}` : ""}`;

/** Template arguments as one text, whatever the order of their names. */
export const argsKey = (args: Record<string, string> | null): string =>
  JSON.stringify(Object.entries(args ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));

/**
 * What keeps groups of runs from meaning the same: fields of which not all have one value. Several prompts, or the same sets of template
 * arguments in each group, are no difference: they are paired. `before` is of the first group, `after` of the others.
 */
export function differencesOf(groups: Comparand[][]): Difference[] {
  const valuesOf = (field: Difference["field"], runs: Comparand[]) =>
    [...new Set(runs.map(readers[field]))].filter((value) => value !== null);
  const isPaired = groups.some((runs) => valuesOf("prompt", runs).length > 1);
  return fields.flatMap((field) => {
    const values = groups.map((runs) => valuesOf(field, runs));
    const isSame = new Set(values.flat()).size < 2;
    const isEven = field === "templateArgs" && new Set(values.map((each) => String(each.toSorted()))).size === 1;
    if (isSame || isEven || (isPaired && (field === "prompt" || field === "templateArgs"))) return [];
    const [before = [], ...rest] = values;
    return [{ field, before, after: [...new Set(rest.flat())] }];
  });
}

/** As in `model: openai/gpt-5 against anthropic/claude-opus-4-8`. */
export const differenceWords = ({ field, before, after }: Difference): string =>
  `${field}: ${[...new Set([...before, ...after])].join(" vs. ")}`;
