import { overlapOf, type Phrase } from "./phrases.ts";
import type { DropReason, ProposalSource, TaskProposal } from "./proposal.ts";

/** A proposal before it is ranked. `isWeak`: it says too little without its page, and is only proposed where there are few others. */
export type Candidate = { proposal: TaskProposal; score: number; isWeak?: boolean };

/** Counts candidates that are dropped. */
export type Drop = (reason: DropReason) => void;

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

type Basis = Pick<TaskProposal, "source" | "why"> & {
  text: string;
  /** What the page is about, if the task alone doesn't say it. */
  topic: string | null;
};

/** A proposal from rules: the docs' own words, with the subject, the product's name, and files that hold the result. */
export function toProposal(phrase: Phrase, { product, docsUrl }: ProposalSource, basis: Basis): TaskProposal {
  const task = `${phrase.verb} ${phrase.rest}`;
  const { topic } = basis;
  const namesProduct = isNamedIn(product, `${topic ?? ""} ${task}`);
  const ending = namesProduct ? "" : / with /.test(task) ? `, using ${product}` : ` with ${product}`;
  const title = capitalized(task).slice(0, 200);
  const subject = topic === null ? "" : ` (${topic})`;
  const [order, endGoal] =
    basis.why === "symptom"
      ? ["Write both to answer.md.", `answer.md says why this happens with ${product}, and has a fix that works.`]
      : [
          "Leave the code, settings and commands that it takes as files in the workspace.",
          `The workspace has files with the code, settings and commands that it takes to ${task}${ending}${subject}, and they work.`,
        ];
  return {
    title,
    text: `${title}${ending}${subject}. ${order}`,
    endGoal,
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

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** Whether a text has a name as it is written, because some products are called like what they are about, such as Requests. */
const isNamedIn = (name: string, text: string): boolean =>
  ` ${text} `.replaceAll(/[“”"'’,.]/g, " ").includes(` ${name} `);

/** A goal that shares more of its words with the quoted text is in the docs' own words. */
export const maxOwnWords = 0.6;
