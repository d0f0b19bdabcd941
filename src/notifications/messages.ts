import { count, signedPoints } from "../grading/text.ts";
import type { EventData, EventType } from "./events.ts";

/** A notification for people. */
export type Message = {
  title: string;
  /** The page that the message is about. */
  url: string;
  /** Paragraphs and lists below the title. */
  parts: MessagePart[];
};
export type MessagePart = { heading?: string; lines: { text: string; url?: string }[] };

type Prompt = { id: string; title: string | null };
type WordingContext = {
  baseUrl: string;
  /** Formats times in the time zone of the organization. */
  day: (iso: string) => string;
  time: (iso: string) => string;
  title: (prompt: Prompt) => string;
};
type ToMessage<T extends EventType> = (data: EventData<T>, context: WordingContext) => Message;

const dollars = (usd: number) => `$${usd.toFixed(2)}`;
const pointsOf = (delta: number) => `${signedPoints(delta)} points`;

const outcomeTexts: Record<EventData<"run.completed">["report"]["outcome"], string> = {
  succeeded: "reached the goal",
  goal_not_met: "did not reach the goal",
  not_judged: "ended, goal not tested",
  no_creds: "stopped because credentials were missing",
  excluded: "is not counted",
  scoring_failed: "could not be scored",
};

const problemTexts: Record<EventData<"digest.weekly">["problems"][number]["kind"], (subject: string | null) => string> =
  {
    runs_failed: (prompt) => `${prompt}: runs fail`,
    destination_failing: (name) => `${name}: deliveries fail`,
    budget_spent: (name) => `${name === null ? "The monthly budget" : `The monthly budget of ${name}`} is nearly spent`,
    runs_waiting: (agent) => `Runs with ${agent} wait for a worker`,
    runs_paused: (agent) => `Runs${agent === null ? "" : ` with ${agent}`} are paused by the operator`,
    worker_away: (name) => `Worker ${name} is not connected`,
    schedule_paused: (prompt) => `${prompt}: the schedule is paused, because its evaluations failed`,
    basis_changed: (prompt) => `${prompt}: the docs no longer have the text that it was proposed from`,
    calibration_worse: (agent) => `${agent}: its calibration is significantly worse than before`,
    false_alarms: (prompt) => `${prompt}: compared with itself, it differs`,
    all_schedules_paused: () => "All schedules are paused",
    secrets_unreadable: () => "Stored secrets can’t be read",
    backup_failing: () => "Backups fail",
    check_failed: (title) => title ?? "A check of the installation failed",
  };

const gateTexts: Record<EventData<"gate.decided">["gate"]["status"], string> = {
  passed: "passed",
  failed: "failed",
  error: "could not decide",
};

const describeScore = ({ score, grade }: { score: number | null; grade: string | null }) =>
  score === null ? "not measured" : `score ${score.toFixed(1)}${grade === null ? "" : ` (${grade})`}`;

const toFrictionMessage =
  (news: string) =>
  ({ friction, prompt, report }: EventData<"friction.opened">, { baseUrl, title }: WordingContext): Message => ({
    title: `${news} (${friction.severity}): ${friction.title}`,
    url: `${baseUrl}/friction/${friction.fingerprint}?promptId=${prompt.id}`,
    parts: [
      {
        lines: [
          { text: `Prompt: ${title(prompt)}`, url: `${baseUrl}/prompts/${prompt.id}` },
          { text: "Latest report", url: report.url },
          ...(friction.pageUrl === null ? [] : [{ text: `Page: ${friction.pageUrl}` }]),
        ],
      },
    ],
  });

const listOf = (heading: string, lines: MessagePart["lines"]): MessagePart[] =>
  lines.length === 0 ? [] : [{ heading, lines }];

const messageByType: { [T in EventType]: ToMessage<T> } = {
  "run.completed": ({ run, prompt, report, keyFinding }, { title }) => ({
    title: `${title(prompt)}: the agent ${outcomeTexts[report.outcome]}, ${describeScore(report)}`,
    url: report.url,
    parts: [{ lines: [{ text: keyFinding ?? `Agent: ${run.agent}` }] }],
  }),
  "run.failed": ({ run, prompt, failure }, { title }) => ({
    title: `${title(prompt)}: a run failed`,
    url: run.url,
    parts: [
      {
        lines: [
          { text: `${failure.title}. ${failure.detail}` },
          { text: failure.remedy },
          ...(failure.command === null ? [] : [{ text: failure.command }]),
          ...(failure.action === null ? [] : [{ text: failure.action.label, url: failure.action.url }]),
        ],
      },
    ],
  }),
  "gate.decided": ({ gate, prompts }, { title }) => ({
    title: `Gate ${gateTexts[gate.status]}: ${prompts.map(title).join(", ")}`,
    url: gate.url,
    parts: [{ lines: [{ text: gate.reason }] }],
  }),
  "evaluation.completed": ({ evaluation, prompt, reports }, { title }) => ({
    title: `${title(prompt)}: evaluation ${evaluation.status}`,
    url: evaluation.url,
    parts: [
      {
        lines: [
          { text: `${count(evaluation.runs.completed, "run")} completed, ${evaluation.runs.failed} failed` },
          ...reports.map((report) => ({ text: describeScore(report), url: report.url })),
        ],
      },
    ],
  }),
  "friction.opened": toFrictionMessage("New friction point"),
  "friction.regressed": toFrictionMessage("Regressed friction point"),
  "score.changed": ({ prompt, verdict, delta, before, after }, { title }) => ({
    title: `${title(prompt)}: the score ${verdict} by ${Math.abs(delta).toFixed(1)} points`,
    url: after.url,
    parts: [
      {
        lines: [
          { text: "Report before the change", url: before.url },
          { text: "Report after it", url: after.url },
        ],
      },
    ],
  }),
  "budget.reached": ({ spentUsd, maxUsdAMonth, until }, { baseUrl, day }) => ({
    title: `The monthly model budget of ${dollars(maxUsdAMonth)} is spent`,
    url: `${baseUrl}/settings`,
    parts: [
      {
        lines: [
          {
            text: `Spent: ${dollars(spentUsd)}. Runs with a model fail until ${day(until)}, or until you raise the budget.`,
          },
        ],
      },
    ],
  }),
  "schedule.missed": ({ prompt, missed, from, until }, { baseUrl, title, time }) => ({
    title: `${title(prompt)}: ${count(missed, "scheduled evaluation")} did not run`,
    url: `${baseUrl}/prompts/${prompt.id}`,
    parts: [{ lines: [{ text: `The service was not running. Missed from ${time(from)} to ${time(until)}.` }] }],
  }),
  "digest.weekly": ({ from, until, runs, scores, problems, regressed, fixFirst }, { baseUrl, title, day }) => ({
    title: `Your week on evald, ${day(from)} to ${day(until)}`,
    url: baseUrl,
    parts: [
      { lines: [{ text: `${count(runs.completed, "run")} completed, ${runs.failed} failed.` }] },
      ...listOf(
        "Scores that changed",
        scores.map(({ prompt, delta, cause, whyUrl }) => ({
          text: `${title(prompt)}: ${pointsOf(delta)}${cause === null ? "" : `. ${cause}`}`,
          url: whyUrl,
        })),
      ),
      ...listOf(
        "What needs attention",
        problems.map(({ kind, subject, since }) => ({
          text: `${problemTexts[kind](subject)}, since ${day(since)}`,
          url: baseUrl,
        })),
      ),
      ...listOf(
        "What regressed",
        regressed.map(({ fingerprint, severity, title }) => ({
          text: `${severity}: ${title}`,
          url: `${baseUrl}/friction/${fingerprint}`,
        })),
      ),
      ...listOf(
        "What to fix first",
        fixFirst.map(({ title: what, action, report }) => ({ text: `${what}. ${action}`, url: report.url })),
      ),
      ...(scores.length + problems.length + regressed.length + fixFirst.length === 0
        ? [{ lines: [{ text: "No score changed, nothing regressed, and there is nothing to fix." }] }]
        : []),
    ],
  }),
  "destination.test": ({ destination }, { baseUrl }) => ({
    title: `Test of “${destination.name}”`,
    url: `${baseUrl}/settings/notifications`,
    parts: [{ lines: [{ text: "This destination works." }] }],
  }),
};

/** A notification as a message for Slack and email. Times are in the given time zone. */
export function toMessage({ type, data }: { type: string; data: object }, baseUrl: string, timeZone: string): Message {
  const title = ({ id, title }: Prompt) => title ?? `Prompt ${id}`;
  const inZone = (iso: string) => Temporal.Instant.from(iso).toZonedDateTimeISO(timeZone);
  const day = (iso: string) => inZone(iso).toPlainDate().toString();
  const time = (iso: string) =>
    `${day(iso)} ${inZone(iso).toPlainTime().toString({ smallestUnit: "minute" })} (${timeZone})`;
  return (messageByType[type as EventType] as ToMessage<EventType>)(data as EventData, { baseUrl, title, day, time });
}

/** A message as the plain text of an email. */
export const toText = ({ url, parts }: Message): string =>
  [
    ...parts.map(({ heading, lines }) =>
      [...(heading ? [heading] : []), ...lines.map(({ text, url }) => (url ? `- ${text}\n  ${url}` : text))].join("\n"),
    ),
    url,
  ].join("\n\n");
