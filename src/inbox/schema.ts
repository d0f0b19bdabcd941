import { type Static, Type } from "@sinclair/typebox";
import { RunFailure } from "../agents/remedies.ts";
import { Calibration } from "../calibration/schema.ts";
import { checkIds } from "../checks/checks.ts";
import { causes } from "../checks/problems.ts";
import { drifts } from "../db/tables/experiments.ts";
import { destinationKinds } from "../db/tables/notifications.ts";
import { Id, Nullable, OneOf, Time, Url } from "../schema.ts";
import { Budget } from "../spending/schema.ts";

/** Fields of every item. */
const fields = {
  id: Type.String({
    title: "InboxItemId",
    description: "The same as long as the problem is the same; it has another one if it comes back",
  }),
  since: Time,
  snoozedUntil: Nullable(Time),
  assignee: Nullable(Type.String({ description: "Email address of a member" })),
  markedBy: Nullable(Type.String({ description: "Who snoozed or assigned it last" })),
  markedAt: Nullable(Time),
};

const prompt = Type.Object(
  { id: Id, title: Type.String({ description: "Its title, or the beginning of its task" }) },
  { title: "PromptName" },
);
const ShareOfRuns = Type.Object({
  met: Type.Integer({ description: "Runs that hit it" }),
  of: Type.Integer({ description: "Runs with a report" }),
});

/** Friction that most runs on one side of a change hit, and few on the other side. */
const ChangeCause = Type.Object(
  {
    fingerprint: Type.String(),
    title: Type.String(),
    url: Nullable(Type.String({ description: "The page" })),
    line: Nullable(Type.Integer()),
    before: ShareOfRuns,
    after: ShareOfRuns,
    points: Nullable(
      Type.Number({ description: "Points of the change that it explains, negative if it cost points; null: unknown" }),
    ),
    expectedGain: Nullable(Type.Number({ description: "Points that its recommended fix gains" })),
    slug: Type.String({ description: "The newest report that contains it" }),
  },
  { title: "ChangeCause" },
);
export type ChangeCause = Static<typeof ChangeCause>;

/** Fields of a change and of its explanation. */
const changeFields = {
  prompt,
  agent: Type.String(),
  model: Nullable(Type.String()),
  delta: Type.Number({ description: "Points" }),
  scores: Type.Array(Type.Number(), { description: "Mean score of each of the last evaluations, oldest first" }),
};

export const ScoreChange = Type.Object(
  {
    ...fields,
    kind: OneOf(["score_fell", "score_rose"]),
    ...changeFields,
    before: Type.String({ description: "Slug of the last report before the change" }),
    after: Type.String({ description: "Slug of the first report after it" }),
    cause: Nullable(ChangeCause),
  },
  { title: "ScoreChange" },
);
export type ScoreChange = Static<typeof ScoreChange>;

const SessionStep = Type.Object({
  role: OneOf(["read", "request", "guess", "command"], "guess: a page that doesn't exist"),
  what: Type.String({ description: "The page, the request, or the program" }),
  status: Nullable(Type.Integer({ description: "HTTP status" })),
  times: Type.Integer({ description: "How often in a row" }),
});
export type SessionStep = Static<typeof SessionStep>;

const Side = Type.Object(
  {
    mean: Type.Number({ description: "Mean score of its runs, without the dimensions that comparisons leave out" }),
    runs: Type.Integer(),
    evaluations: Type.Array(
      Type.Object({
        evalRequestId: Id,
        slug: Type.String({ description: "Its newest report" }),
        score: Type.Number({ description: "Mean of its runs" }),
        runs: Type.Integer(),
        at: Time,
      }),
      { description: "Oldest first" },
    ),
    session: Nullable(
      Type.Object(
        {
          slug: Type.String(),
          steps: Type.Array(SessionStep, { description: "The first ones" }),
          calls: Type.Integer(),
          costUsd: Nullable(Type.Number()),
          seconds: Nullable(Type.Number()),
        },
        { description: "What the agent did in the run next to the change" },
      ),
    ),
  },
  { title: "ScoreChangeSide" },
);

const PageState = Type.Object({
  isRead: Type.Boolean({ description: "Whether the agent could read it" }),
  status: Nullable(Type.Integer({ description: "HTTP status" })),
  chars: Nullable(Type.Integer({ description: "Length of its text" })),
});

const ChangedPage = Type.Object({
  url: Type.String(),
  before: PageState,
  after: PageState,
  lines: Type.Array(Type.Object({ change: OneOf(["none", "added", "removed"]), text: Type.String() }), {
    description:
      "The lines that differ between the last session before the change and the first after it, with two around them; empty if the sessions don't have the text",
  }),
});
export type ChangedPage = Static<typeof ChangedPage>;

/** At least one UUID. */
const idList = { minLength: 36, maxLength: 4000 };
/** The change to explain, from base to head. Without them, it is the newest significant change. */
export const Windows = Type.Object({
  base: Type.Optional(Type.String({ ...idList, description: "IDs of evaluations, separated by commas" })),
  head: Type.Optional(Type.String({ ...idList, description: "IDs of later evaluations" })),
});

/** The IDs of the evaluations before and after a change; undefined unless the query names both sides. */
export const toWindows = (base: string | undefined, head: string | undefined) =>
  base === undefined || head === undefined ? undefined : { before: base.split(","), after: head.split(",") };

/** Why a score changed. */
export const ScoreChangeExplanation = Type.Object(
  {
    kind: ScoreChange.properties.kind,
    id: fields.id,
    since: Time,
    ...changeFields,
    before: Side,
    after: Side,
    low: Nullable(Type.Number({ description: "Lower end of the 95% interval of delta; null: exact" })),
    high: Nullable(Type.Number()),
    causes: Type.Array(ChangeCause, { description: "The one that explains most first" }),
    agentPoints: Type.Number({ description: "Points of the change that the agent's own mistakes explain" }),
    networkPoints: Type.Number({ description: "Points of the change that the network explains" }),
    unexplained: Type.Number({ description: "The rest of the points" }),
    pages: Type.Array(ChangedPage),
  },
  {
    title: "ScoreChangeExplanation",
    description: "The newest significant change of a prompt's score, and what explains it",
  },
);
export type ScoreChangeExplanation = Static<typeof ScoreChangeExplanation>;

const RunsFailed = Type.Object({
  ...fields,
  kind: OneOf(["runs_failed"], "Runs of a prompt failed"),
  prompt,
  agent: Type.String(),
  failed: Type.Integer({ description: "Runs that failed" }),
  of: Type.Integer({
    description: "Runs since the last report, within 30 days; if none failed since then, those of the last 7 days",
  }),
  failure: RunFailure,
  otherPrompts: Type.Array(prompt, {
    description: "Prompts whose runs fail for the same reason; failed and of cover all",
  }),
  runId: Type.String({ format: "uuid", description: "The newest of them; failure is its" }),
  lastReportAt: Nullable(Time),
});

const DestinationFailing = Type.Object({
  ...fields,
  kind: OneOf(["destination_failing"]),
  destination: Type.Object({ id: Id, name: Type.String(), kind: OneOf(destinationKinds), url: Nullable(Url) }),
  isDisabled: Type.Boolean(),
  pending: Type.Integer({ description: "Events that wait to be sent again" }),
  status: Nullable(Type.Integer({ description: "HTTP status of the last try; null: no response" })),
  error: Nullable(Type.String({ description: "Why the last try had no response" })),
});

const BudgetSpent = Type.Object({
  ...fields,
  kind: OneOf(["budget_spent"], "At least 80% of the monthly budget is spent"),
  spentUsd: Type.Number(),
  maxUsd: Type.Number(),
  budget: Nullable(Type.Pick(Budget, ["promptId", "tag", "name"], { description: "null: of the organization" })),
});

const RunsWaiting = Type.Object({
  ...fields,
  kind: OneOf(["runs_waiting"], "Runs have waited for more than five minutes for a worker that can run them"),
  runs: Type.Integer(),
  agent: Type.String(),
  runId: Type.String({ format: "uuid", description: "The one that has waited longest" }),
});

const WorkerAway = Type.Object({
  ...fields,
  kind: OneOf(["worker_away"], "A worker left without being told to, and no other has what runs need"),
  worker: Type.String({ description: "Its name" }),
  agents: Type.Array(Type.String(), { description: "Agents of recent runs that no connected worker has" }),
  labels: Type.Array(Type.String(), { description: "Labels of prompts that no connected worker has" }),
});

const SchedulePaused = Type.Object({
  ...fields,
  kind: OneOf(["schedule_paused"], "evald paused the schedule of a prompt, because its evaluations failed"),
  prompt,
});

const BasisChanged = Type.Object({
  ...fields,
  kind: OneOf(["basis_changed"], "The docs no longer have the text that a prompt was proposed from"),
  prompt,
  url: Type.String(),
  line: Type.Integer(),
  quote: Type.String(),
  runId: Type.String({ format: "uuid", description: "The first that found it changed" }),
});

const CalibrationWorse = Type.Object({
  ...fields,
  kind: OneOf(["calibration_worse"], "An agent finds significantly less than before, or more that is false"),
  calibrationId: Id,
  agent: Type.String(),
  model: Nullable(Type.String()),
  worse: Calibration.properties.worse,
});

const FalseAlarms = Type.Object({
  ...fields,
  kind: OneOf(["false_alarms"], "A comparison of a prompt with itself found a difference"),
  prompt,
  drift: OneOf(
    drifts,
    "rate: too many gates fail; spread: equal arms differ more than before; explorer: its runs differ",
  ),
  experimentId: Id,
});

const AllSchedulesPaused = Type.Object({
  ...fields,
  kind: OneOf(["all_schedules_paused"], "Someone paused all schedules of the organization"),
  schedules: Type.Integer(),
});

const RunsPaused = Type.Object({
  ...fields,
  kind: OneOf(["runs_paused"], "An operator holds back the runs of the organization, or with an agent"),
  agent: Nullable(Type.String({ description: "null: all agents" })),
  runs: Type.Integer({ description: "Runs that wait because of that" }),
  reason: Nullable(Type.String()),
});

const SecretsUnreadable = Type.Object({
  ...fields,
  kind: OneOf(["secrets_unreadable"], "Stored secrets can't be decrypted with EVALD_SECRET_KEY"),
  modelKeys: Type.Integer(),
  destinations: Type.Integer(),
  isKeyMissing: Type.Boolean({ description: "EVALD_SECRET_KEY is not set; false: it has changed" }),
});

const BackupFailing = Type.Object({
  ...fields,
  kind: OneOf(["backup_failing"], "Scheduled backups fail, or the last one is late"),
  failures: Type.Integer({ description: "Failed tries since the last backup; 0: it is late" }),
  failure: Nullable(Type.String({ description: "Why the newest try failed; null: the backup is late" })),
  lastBackupAt: Nullable(Time),
});

const CheckFailed = Type.Object({
  ...fields,
  kind: OneOf(["check_failed"], "A check of the installation found a problem"),
  check: OneOf(checkIds),
  cause: OneOf(causes),
  state: OneOf(["failed", "warning"]),
  subject: Nullable(Type.String({ description: "What it is about, such as a URL" })),
  detail: Type.String({ description: "What the check found" }),
  findings: Type.Integer({ description: "How often it found this; subject and detail are of the first" }),
  title: Type.String(),
  remedy: Type.String(),
  command: Nullable(Type.String()),
});

/** An item without what people decided about it. */
export type Unmarked<T> = T extends unknown ? Omit<T, "snoozedUntil" | "assignee" | "markedBy" | "markedAt"> : never;

export const InboxItem = Type.Union(
  [
    ScoreChange,
    RunsFailed,
    DestinationFailing,
    BudgetSpent,
    RunsWaiting,
    RunsPaused,
    WorkerAway,
    SchedulePaused,
    BasisChanged,
    CalibrationWorse,
    FalseAlarms,
    AllSchedulesPaused,
    SecretsUnreadable,
    BackupFailing,
    CheckFailed,
  ],
  { title: "InboxItem" },
);
export type InboxItem = Static<typeof InboxItem>;

export const Inbox = Type.Object(
  {
    problems: Type.Array(InboxItem, { description: "Worst first" }),
    improvements: Type.Array(ScoreChange, { description: "Largest first" }),
    snoozed: Type.Integer({ description: "Problems that are left out because they are snoozed" }),
    spending: Type.Object({
      spentUsd: Type.Number(),
      maxUsd: Nullable(Type.Number()),
      expectedUsd: Nullable(
        Type.Number({ description: "For the whole month at the pace so far; null on the first day" }),
      ),
      until: Time,
    }),
  },
  { title: "Inbox", description: "What changed and needs attention, over all prompts" },
);
export type Inbox = Static<typeof Inbox>;

export const InboxMark = Type.Object(
  {
    snoozedUntil: Type.Optional(Nullable(Type.String({ format: "date-time", description: "Hide it until then" }))),
    assignee: Type.Optional(
      Nullable(Type.String({ maxLength: 320, description: "Email address of a member; null: nobody" })),
    ),
  },
  { title: "InboxMark", examples: [{ assignee: "olga@example.com" }], minProperties: 1 },
);
export type InboxMark = Static<typeof InboxMark>;
