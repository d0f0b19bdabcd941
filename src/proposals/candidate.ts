import { contentStems, overlapOf, type Phrase, thirdPerson } from "./phrases.ts";
import type { DropReason, ProposalSource, TaskProposal } from "./proposal.ts";

/** A proposal before it is ranked. */
export type Candidate = { proposal: TaskProposal; score: number };

/** Counts candidates that are dropped. */
export type Drop = (reason: DropReason) => void;

/** What the agent writes, and to which file, by the language of the samples. */
const products: Record<string, [what: string, file: string]> = {
  python: ["a Python program", "solution.py"],
  py: ["a Python program", "solution.py"],
  pycon: ["a Python program", "solution.py"],
  js: ["a JavaScript program", "solution.js"],
  javascript: ["a JavaScript program", "solution.js"],
  jsx: ["a JavaScript program", "solution.jsx"],
  mjs: ["a JavaScript program", "solution.mjs"],
  ts: ["a TypeScript program", "solution.ts"],
  tsx: ["a TypeScript program", "solution.tsx"],
  typescript: ["a TypeScript program", "solution.ts"],
  go: ["a Go program", "main.go"],
  rust: ["a Rust program", "main.rs"],
  java: ["a Java program", "Solution.java"],
  ruby: ["a Ruby program", "solution.rb"],
  php: ["a PHP program", "solution.php"],
  sql: ["an SQL script", "solution.sql"],
  bash: ["a shell script", "solution.sh"],
  sh: ["a shell script", "solution.sh"],
  shell: ["a shell script", "solution.sh"],
  console: ["a shell script", "solution.sh"],
  yaml: ["a configuration", "config.yaml"],
  yml: ["a configuration", "config.yaml"],
  json: ["a configuration", "config.json"],
  toml: ["a configuration", "config.toml"],
};
const steps: [what: string, file: string] = ["steps with all commands and code", "solution.md"];

const cleanup =
  /^(delete|remove|uninstall|revoke|purge|prune|clean|clear|unsubscribe|drop|shut down|discard|reset|cancel)\b/;
const onboarding =
  /^(install|set up|authenticate|connect|create (an?|your) (new )?(project|app|application|account|repository|client)\b)/;
const errors = /\b(errors?|exceptions?|fail\w*|retry|retries|timeouts?|recover|debug|invalid|reject)\b/;
/** What costs money, destroys what others have or writes to people. */
const delicate =
  /\b(buy|purchase|order|pay|charge|refund|invite|e-?mails?|sms|text messages?|newsletter|notify|tweet|post to)\b|\b(delete|remove|purge|drop|erase)\b.*\b(users?|accounts?|members?|customers?|databases?|organi[sz]ations?|production|buckets?)\b/i;

/** What a person must provide, by the task and the text that it rests on. */
export function needsOf(task: string, basis: string): TaskProposal["needs"] {
  const needs: TaskProposal["needs"] = [];
  if (/\b(sign up|create an account|your account|dashboard)\b/i.test(basis)) needs.push("account");
  if (/\b(api[ _-]?keys?|access tokens?|client[ _-]secret|_TOKEN\b|_API_KEY\b|bearer)\b/i.test(basis))
    needs.push("secret");
  if (delicate.test(task)) needs.push("approval");
  return needs;
}

/** The kind of task, as a tag. */
const tagOf = (task: string): string => {
  const text = task.toLowerCase();
  if (cleanup.test(text)) return "cleanup";
  if (onboarding.test(text)) return "onboard";
  return errors.test(text) ? "errors" : "core";
};

/** The language that most samples have; null if none is known. */
export function languageOf(languages: (string | null)[]): string | null {
  const known = languages.filter((language) => language !== null && language in products);
  const counts = Map.groupBy(known, (language) => language);
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? null;
}

type Basis = Pick<TaskProposal, "source" | "why"> & { language: string | null; text: string };

/** A proposal from rules: the docs' own words, with the product's name, and a file that holds the result. */
export function toProposal(phrase: Phrase, { product, docsUrl }: ProposalSource, basis: Basis): TaskProposal {
  const task = `${phrase.verb} ${phrase.rest}`;
  const namesProduct = contentStems(product).every((stem) => contentStems(task).includes(stem));
  const ending = namesProduct ? "" : ` with ${product}`;
  const title = `${task[0]!.toUpperCase()}${task.slice(1)}`.slice(0, 200);
  const [what, file] = products[basis.language ?? ""] ?? steps;
  const verb = what.startsWith("steps") ? phrase.verb : thirdPerson(phrase.verb);
  return {
    title,
    text: `${title}${ending}. Write ${what} that ${what.startsWith("steps") ? "do" : "does"} it to ${file}.`,
    endGoal: `${file} contains ${what} that ${verb} ${phrase.rest}${ending}.`,
    additionalUrls: [{ url: docsUrl }],
    tags: [tagOf(task)],
    declaredChecks: [],
    hints: [],
    needs: needsOf(task, basis.text),
    by: "rules",
    source: basis.source,
    docsOwnWords: overlapOf(task, basis.source.quote) > maxOwnWords,
    why: basis.why,
  };
}

/** A goal that shares more of its words with the quoted text is in the docs' own words. */
export const maxOwnWords = 0.6;
