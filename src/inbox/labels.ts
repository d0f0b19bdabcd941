import { worseLabels } from "../calibration/labels.ts";
import { count, dollars, oneLine, signedPoints } from "../grading/text.ts";
import type { ChangeCause, InboxItem } from "./schema.ts";

const maxQuoteChars = 120;

/** The size of a problem or an improvement: `−8.2`, or `3 of 4 failed`. If it has no size, its state or kind: `Paused`. */
export function itemSize(item: InboxItem): string {
  switch (item.kind) {
    case "score_fell":
    case "score_rose":
      return signedPoints(item.delta);
    case "runs_failed":
      return item.of === 1 ? "Failed" : `${item.failed} of ${item.of} failed`;
    case "destination_failing":
      return item.isDisabled ? "Disabled" : "Failing";
    case "budget_spent":
      return `${Math.floor((100 * item.spentUsd) / item.maxUsd)}%`;
    case "schedule_paused":
    case "all_schedules_paused":
    case "runs_paused":
      return "Paused";
    case "basis_changed":
      return "Changed";
    case "false_alarms":
      return item.drift === "spread" ? "Noise" : "False alarms";
    case "calibration_worse":
      return "Worse";
    case "secrets_unreadable":
      return "Secrets";
    case "backup_failing":
      return item.failure === null ? "Late" : "Failing";
    case "check_failed":
      return item.state === "failed" ? "Failed" : "Warning";
    case "worker_away":
      return "Away";
    case "runs_waiting":
      return "Waiting";
  }
}

/** The subject of an item: titles of prompts, or the name of something else. */
export function itemSubject(item: InboxItem): string {
  switch (item.kind) {
    case "score_fell":
    case "score_rose":
    case "schedule_paused":
    case "basis_changed":
    case "false_alarms":
      return item.prompt.title;
    case "runs_failed":
      return [item.prompt, ...item.otherPrompts].map(({ title }) => title).join(", ");
    case "all_schedules_paused":
      return "All schedules";
    case "calibration_worse":
      return item.model === null ? item.agent : `${item.agent} with ${item.model}`;
    case "destination_failing":
      return item.destination.name;
    case "budget_spent":
      if (item.budget === null) return "Monthly budget";
      return `Monthly budget of ${item.budget.tag === null ? item.budget.name : `tag ${item.budget.tag}`}`;
    case "secrets_unreadable":
      return item.isKeyMissing ? "EVALD_SECRET_KEY is missing" : "EVALD_SECRET_KEY has changed";
    case "backup_failing":
      return "Backups";
    case "check_failed":
      return item.title;
    case "worker_away":
      return `Worker ${item.worker}`;
    case "runs_waiting":
      return count(item.runs, "run");
    case "runs_paused":
      return item.agent === null ? "Runs of the organization" : `Runs with ${item.agent}`;
  }
}

/** "3 runs wait." */
const waitingText = (total: number, noun: string): string => `${count(total, noun)} ${total === 1 ? "waits" : "wait"}.`;

/** The problem and what to do about it, as text that follows a colon. */
export function itemText(item: InboxItem): string {
  switch (item.kind) {
    case "score_fell":
    case "score_rose":
      return item.cause ? causeText(item.cause, item.delta < 0) : "no friction explains it";
    case "runs_failed": {
      const { title, detail, remedy } = item.failure;
      return `${title}. ${detail} ${remedy}`;
    }
    case "destination_failing": {
      const { destination, pending, status, error } = item;
      const problem =
        status === null ? (error ?? "no response") : `${destination.url ?? "the server"} answers ${status}`;
      return pending > 0 ? `${problem}. ${waitingText(pending, "event")}` : `${problem}.`;
    }
    case "budget_spent": {
      const spent = `${dollars(item.spentUsd)} of ${dollars(item.maxUsd)} spent.`;
      return item.spentUsd >= item.maxUsd ? `${spent} Runs with a model don’t start until next month.` : spent;
    }
    case "schedule_paused":
      return "evald paused its schedule, because its evaluations failed.";
    case "basis_changed":
      return `the page no longer has the text that the task was proposed from: “${oneLine(item.quote, maxQuoteChars)}”, line ${item.line} of ${item.url}. Check that the task still fits.`;
    case "calibration_worse":
      return `its calibration is significantly worse than the one before: it ${item.worse.map((figure) => worseLabels[figure]).join(" and ")}.`;
    case "false_alarms":
      return driftTexts[item.drift];
    case "all_schedules_paused":
      return `${count(item.schedules, "schedule")} ${item.schedules === 1 ? "does" : "do"} not run until someone resumes them.`;
    case "secrets_unreadable":
      return `${count(item.modelKeys, "model key")} and ${count(item.destinations, "destination")} can’t be used. Restore the setting, or store them again.`;
    case "backup_failing":
      return item.failure ?? "the scheduled backup is late.";
    case "check_failed":
      return `${item.detail}${item.findings > 1 ? ` and ${item.findings - 1} more` : ""}. ${item.remedy}`;
    case "worker_away":
      return `no connected worker has ${[...item.agents, ...item.labels.map((label) => `the label ${label}`)].join(", ")}.`;
    case "runs_paused": {
      const reason = item.reason === null ? "" : `: ${item.reason}`;
      return `an operator of this server has paused them${reason}. ${waitingText(item.runs, "run")}`;
    }
    case "runs_waiting":
      return `no connected worker can run ${item.agent}.`;
  }
}

const driftTexts: Record<Extract<InboxItem, { kind: "false_alarms" }>["drift"], string> = {
  explorer:
    "two runs of the explorer on the same docs differ. Unless the docs changed in between, this is a defect of evald: please report it.",
  rate: "compared with itself, more gates find a change than the 5% that chance explains. Its gates can’t be relied on.",
  spread:
    "compared with itself, its runs differ significantly more than before. The agent, the grader or the docs became noisier, so gates see less.",
};

/** "Dead link: /upload (9 of 9 runs, previously 0 of 9)". */
const causeText = ({ title, before, after }: ChangeCause, isWorse: boolean): string =>
  `${title}${isWorse ? " " : ": no longer hit "}(${after.met} of ${count(after.of, "run")}, previously ${before.met} of ${before.of})`;
