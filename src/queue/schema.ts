import { type Static, Type } from "@sinclair/typebox";
import { pauseKinds } from "../db/tables/pauses.ts";
import { workerStates } from "../places/messages.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });

export const QueuePauseInput = Type.Object(
  {
    kind: OneOf(pauseKinds),
    subject: Type.String({
      minLength: 1,
      maxLength: 200,
      description: "Name or ID of the organization, or ID of the agent",
    }),
    reason: Type.Optional(Nullable(Type.String({ maxLength: 300, description: "Shown to everyone whose runs wait" }))),
  },
  { title: "QueuePauseInput", examples: [{ kind: "agent", subject: "codex", reason: "Upgrade of the CLI" }] },
);
export type QueuePauseInput = Static<typeof QueuePauseInput>;

export const QueuePause = Type.Object(
  {
    kind: OneOf(pauseKinds),
    subject: Type.String({ description: "ID of the organization or the agent" }),
    name: Type.String(),
    reason: Nullable(Type.String()),
    pausedBy: Type.String(),
    pausedAt: Time,
  },
  { title: "QueuePause" },
);
export type QueuePause = Static<typeof QueuePause>;

const counts = {
  waiting: count("Runs that may start as soon as there is a place"),
  delayed: count("Runs that failed and are tried again later"),
  paused: count("Runs that an operator holds back"),
  running: count("Runs that have started"),
  failing: count("Unfinished runs that have failed before"),
  oldestWaitingAt: Nullable(Time),
};

export const QueueOverview = Type.Object(
  {
    ...counts,
    organizations: Type.Array(Type.Object({ id: Id, name: Type.String(), isPaused: Type.Boolean(), ...counts }), {
      description: "Those with unfinished runs, or paused ones, longest queue first",
    }),
    agents: Type.Array(Type.Object({ agent: Type.String(), isPaused: Type.Boolean(), ...counts }), {
      description: "Those with unfinished runs, or paused ones, longest queue first",
    }),
    workers: Type.Array(
      Type.Object({
        name: Type.String(),
        state: OneOf(workerStates),
        slots: count("Maximum"),
        sessions: count("Active"),
      }),
      { description: "Empty if agents run on the server itself" },
    ),
    deliveries: Type.Object({ waiting: counts.waiting, delayed: counts.delayed, running: counts.running }),
    pauses: Type.Array(QueuePause, { description: "Oldest first" }),
  },
  { title: "QueueOverview", description: "The queue of all organizations" },
);
export type QueueOverview = Static<typeof QueueOverview>;

export const FailureGroup = Type.Object(
  {
    id: Type.String({ description: "Names the group in a retry" }),
    kind: OneOf(["run", "delivery"]),
    cause: Type.String(),
    code: Nullable(Type.String({ description: "Code of the failure of a run, or HTTP status of a delivery" })),
    failed: Type.Integer({ minimum: 1, description: "Without those that were retried" }),
    organizations: Type.Array(Type.String(), { description: "Names of the organizations" }),
    oldestAt: Time,
    newestAt: Time,
  },
  { title: "FailureGroup" },
);
export type FailureGroup = Static<typeof FailureGroup>;

export const GroupRetry = Type.Object(
  {
    retried: count("Runs or deliveries"),
    refused: count("Those that can't be retried, such as those of an archived prompt or a disabled destination"),
    left: count("Those that another request retries"),
  },
  { title: "GroupRetry" },
);
export type GroupRetry = Static<typeof GroupRetry>;
