import { type Static, Type } from "@sinclair/typebox";
import { scheduleOutcomes } from "../db/tables/schedules.ts";
import { Prompt } from "../prompts/schema.ts";
import { runExample } from "../runs/schema.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

/** An evaluation that a schedule requested, whether or not it ran. */
export const ScheduledEvaluation = Type.Object(
  {
    scheduledAt: Time,
    outcome: OneOf(
      scheduleOutcomes,
      "ran; missed: the service was down; skipped_overlap: runs of the previous scheduled evaluation were still active; failed: its runs could not be requested; waiting: for the end of the previous one",
    ),
    evalRequestId: Nullable(Id),
    reason: Nullable(Type.String({ description: "Why it did not run, or ran late; null: it ran on time" })),
    createdAt: Time,
  },
  {
    title: "ScheduledEvaluation",
    examples: [
      {
        scheduledAt: "2026-11-20T04:12:00.000Z",
        outcome: "ran",
        evalRequestId: runExample.evalRequestId,
        reason: null,
        createdAt: "2026-11-20T04:12:00.004Z",
      },
    ],
  },
);
export type ScheduledEvaluation = Static<typeof ScheduledEvaluation>;

/** A scheduled evaluation that did not run, or ran late. */
export const ScheduleException = Type.Object(
  { prompt: Type.Object({ id: Id, title: Type.String() }), ...ScheduledEvaluation.properties },
  { title: "ScheduleException" },
);
export type ScheduleException = Static<typeof ScheduleException>;

const { frequency, catchUp, catchUpHours, overlap } = Prompt.properties;

/** The schedule of a prompt. */
export const Schedule = Type.Object(
  {
    promptId: Id,
    frequency,
    catchUp,
    catchUpHours,
    overlap,
    runsPerEval: Type.Integer({ minimum: 1, description: "Runs per evaluation" }),
    timeZone: Type.String({ description: "Time zone of the organization" }),
    pausedBy: Nullable(
      OneOf(
        ["prompt", "organization"],
        "prompt: its status is paused or archived; organization: all its schedules are",
      ),
    ),
    nextTimes: Type.Array(Time, { maxItems: 20, description: "The next 20; empty while it is paused" }),
  },
  { title: "Schedule" },
);
export type Schedule = Static<typeof Schedule>;

export const ScheduleState = Type.Object(
  {
    pausedAt: Nullable(Time),
    schedules: Type.Integer({ minimum: 0, description: "Active prompts with a schedule" }),
  },
  { title: "ScheduleState", description: "Whether all schedules of the organization are paused" },
);
export type ScheduleState = Static<typeof ScheduleState>;

export const TagSchedule = Type.Object(
  {
    tag: Type.String({ minLength: 1, maxLength: 50, description: "All prompts with this tag that are not archived" }),
    frequency,
  },
  { title: "TagSchedule", examples: [{ tag: "nightly", frequency: "0 3 * * *" }] },
);
export type TagSchedule = Static<typeof TagSchedule>;

export const TagScheduleResult = Type.Object(
  {
    scheduled: Type.Integer({ minimum: 0, description: "Prompts that have the frequency now" }),
    skipped: Type.Integer({ minimum: 0, description: "Prompts that can't have it, and were not changed" }),
    problems: Type.Array(Type.Object({ promptId: Id, detail: Type.String() }), {
      description: "Why prompts were skipped, the first 20",
    }),
  },
  { title: "TagScheduleResult" },
);
export type TagScheduleResult = Static<typeof TagScheduleResult>;
