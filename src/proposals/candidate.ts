import { capitalize } from "../grading/text.ts";
import { overlapOf, type Phrase } from "./phrases.ts";
import type { DropReason, ProposalSource, TaskProposal } from "./proposal.ts";

/** A proposal before it is ranked. `isWeak`: it says too little without its page, and is only proposed where there are few others. */
export type Candidate = { proposal: TaskProposal; score: number; isWeak?: boolean };

/** Counts candidates that are dropped. */
export type Drop = (reason: DropReason) => void;

/** A goal that shares more of its words with the quoted text is in the docs' own words. */
export const maxOwnWords = 0.6;

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

/** `text`: what the docs say about the task. */
type Basis = Pick<TaskProposal, "source" | "why"> & { text: string };

/** What is set up belongs to the product rather than is done with it. */
const preparation = /^(set up|configure|enable|disable|activate|customize|extend)$/;

/** What a task ends with to name the product, such as ` with Acme`; empty if it names it already. */
function endingOf({ verb, rest }: Phrase, product: string): string {
  if (isNamedIn(product, rest)) return "";
  if (preparation.test(verb) && !/\b(for|in|your)\b/.test(rest)) return ` for ${product}`;
  return /\bwith\b/.test(rest) ? `, using ${product}` : ` with ${product}`;
}

/** A proposal from rules: the docs' own words, with the product's name, and files that hold the result. */
export function toProposal(phrase: Phrase, { product, docsUrl }: ProposalSource, basis: Basis): TaskProposal {
  const task = `${phrase.verb} ${phrase.rest}`;
  const ending = endingOf(phrase, product);
  const title = capitalize(task).slice(0, 200);
  const isQuestion = basis.why === "symptom";
  const instruction = isQuestion
    ? "Write both to answer.md."
    : "Leave the code, settings and commands that it takes as files in the workspace.";
  return {
    title,
    text: `${title}${ending}. ${instruction}`,
    endGoal: isQuestion
      ? `answer.md says why this happens with ${product}, and has a fix that works.`
      : `The workspace has files with the code, settings and commands that it takes to ${task}${ending}, and they work.`,
    additionalUrls: [{ url: docsUrl }],
    tags: [tagOf(task)],
    declaredChecks: [],
    checksNotRun: null,
    hints: [],
    needs: needsOf(task, basis.text),
    by: "rules",
    source: basis.source,
    docsOwnWords: overlapOf(task, basis.source.quote) > maxOwnWords,
    why: basis.why,
  };
}

/**
 * Whether a text has a name, with the same capitals, because some products are called like what they are about, such as Requests. Blanks may be
 * left out.
 */
export const isNamedIn = (name: string, text: string): boolean =>
  [name, name.replaceAll(" ", "")].some((each) => ` ${text} `.replaceAll(/[“”"'’,.]/g, " ").includes(` ${each} `));
