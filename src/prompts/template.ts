import { AppError, invalidField } from "../errors.ts";
import { ownMember } from "../schema.ts";

// An escaped `\{{` is matched first, so that it is never read as the start of a variable.
const variablePattern = /\\\{\{|\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}/g;

/** The variables of a prompt, in order of first appearance; null if it has none. */
export function templateVarsOf(...texts: (string | null)[]): string[] | null {
  const names = new Set<string>();
  for (const text of texts) for (const [, name] of (text ?? "").matchAll(variablePattern)) if (name) names.add(name);
  return names.size === 0 ? null : [...names];
}

/** Maximum variables of a prompt. Its pages have an input for each. */
export const maxVariables = 200;

/** The variables of a new task. Throws bad_request for too many. */
export function parseTemplateVars(text: string, endGoal: string | null): string[] | null {
  const names = templateVarsOf(text, endGoal);
  if (names !== null && names.length > maxVariables)
    throw invalidField("text", `text and endGoal must not have more than ${maxVariables} template variables`);
  return names;
}

/** Replaces the variables of a text once. Variables in the arguments are not replaced. `\{{` becomes `{{`. */
export function fillTemplate(text: string, args: Record<string, string>): string {
  return text.replace(variablePattern, (match, name?: string) =>
    name === undefined ? "{{" : (ownMember(args, name) ?? match),
  );
}

/** Selects the arguments for a prompt's variables; null if the prompt has none. Throws `missing_template_vars`. */
export function selectArgs(vars: string[] | null, args: Record<string, string>): Record<string, string> | null {
  if (!vars) return null;
  const missing = vars.filter((name) => !Object.hasOwn(args, name));
  if (missing.length > 0)
    throw new AppError("missing_template_vars", `Missing template variables in templateArgs: ${missing.join(", ")}.`);
  return Object.fromEntries(vars.map((name) => [name, args[name] as string]));
}
