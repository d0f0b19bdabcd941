import { capitalize } from "../grading/text.ts";
import { anyWordOf } from "./patterns.ts";
import { overlapOf, type Phrase } from "./phrases.ts";
import type { DropReason, ProposalSource, TaskProposal } from "./proposal.ts";

/** A proposal before it is ranked. `isWeak`: it says too little without its page, so it is proposed only if there are few others. */
export type Candidate = { proposal: TaskProposal; score: number; isWeak?: boolean };

/** Counts candidates that are dropped. */
export type Drop = (reason: DropReason) => void;

/** The share of its words that a goal may have in common with the quoted text. With a larger share, the goal is in the docs' own words. */
export const maxOwnWords = 0.6;

const payments = anyWordOf(/buy|purchase|order|pay|charge|refund/);
const messages = anyWordOf(/invite|e-?mails?|sms|text messages?|newsletter|notify|tweet|post to/);
const destruction = anyWordOf(/delete|remove|purge|drop|erase/);
const belongings = anyWordOf(/users?|accounts?|members?|customers?|databases?|organi[sz]ations?|production|buckets?/);
const destructionOfBelongings = new RegExp(`${destruction.source}.*${belongings.source}`, "i");
/** Tasks that cost money, write to people or destroy what belongs to others. */
const delicate = [payments, messages, destructionOfBelongings];

const account = anyWordOf(/sign up|create an account|your account|dashboard/);
const secret = anyWordOf(/api[ _-]?keys?|access tokens?|client[ _-]secret|\w+_TOKEN|\w+_API_KEY|bearer/);

/** What a person must provide, judged by the task and by what the docs say about it. */
export function needsOf(task: string, docsText: string): TaskProposal["needs"] {
  const needs: TaskProposal["needs"] = [];
  if (account.test(docsText)) needs.push("account");
  if (secret.test(docsText)) needs.push("secret");
  if (delicate.some((pattern) => pattern.test(task))) needs.push("approval");
  return needs;
}

const cleanup =
  /^(delete|remove|uninstall|revoke|purge|prune|clean|clear|unsubscribe|drop|shut down|discard|reset|cancel)\b/;
const onboarding = [
  /^(install|set up|authenticate|connect)/,
  /^create (an?|your) (new )?(project|app|application|account|repository|client)\b/,
];
const errors = /\b(errors?|exceptions?|fail\w*|retry|retries|timeouts?|recover|debug|invalid|reject)\b/;

/** The kind of task, as a tag. */
function tagOf(task: string): string {
  const text = task.toLowerCase();
  if (cleanup.test(text)) return "cleanup";
  if (onboarding.some((pattern) => pattern.test(text))) return "onboard";
  return errors.test(text) ? "errors" : "core";
}

/** `text`: what the docs say about the task. */
type Basis = Pick<TaskProposal, "source" | "why"> & { text: string };

/** Verbs of tasks that are done for the product and not with it: "Set up alerts for Acme". */
const preparation = /^(set up|configure|enable|disable|activate|customize|extend)$/;

/** The ending with which a task names the product, such as ` with Acme`; empty: the task names it already. */
function endingOf({ verb, rest }: Phrase, product: string): string {
  if (isNamedIn(product, rest)) return "";
  if (preparation.test(verb) && !/\b(for|in|your)\b/.test(rest)) return ` for ${product}`;
  return /\bwith\b/.test(rest) ? `, using ${product}` : ` with ${product}`;
}

/** A proposal by rules: the docs' own words, the name of the product, and files that hold the result. */
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
 * Whether a text contains a name, with or without its blanks. Upper and lower case must match, because some products are called like their subject,
 * such as Requests.
 */
export const isNamedIn = (name: string, text: string): boolean =>
  [name, name.replaceAll(" ", "")].some((each) => ` ${text} `.replaceAll(/[“”"'’,.]/g, " ").includes(` ${each} `));
