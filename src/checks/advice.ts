import { type Cause, problemOf } from "./problems.ts";

/** What a finding means and what to do about it, in sentences. `command` null: none helps. */
type Advice = { title: string; remedy: string; command: string | null };

/** The advice about a cause. `subject`: what the finding is about. */
export function adviceFor(cause: Cause, subject: string | null): Advice {
  const { title, remedy, command } = problemOf(cause);
  return { title, remedy, command: command?.replaceAll("{subject}", () => quoteForShell(subject ?? "")) ?? null };
}

/** Text as one word of a shell. */
const quoteForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
