import { type Static, Type } from "@sinclair/typebox";
import { deletionKinds, deletionStatuses, type keptKinds } from "../db/tables/deletions.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

const Count = Type.Integer({ minimum: 0 });

/** Something that was deleted. */
export const Deletion = Type.Object(
  {
    id: Id,
    kind: OneOf(deletionKinds),
    subjectId: Type.String({ description: "ID of the organization, prompt or run" }),
    title: Nullable(Type.String({ description: "null: it was erased" })),
    counts: Type.Object({ prompts: Count, runs: Count, reports: Count }, { description: "What was deleted with it" }),
    status: OneOf(deletionStatuses, "pending: it can be restored"),
    deletedBy: Nullable(Type.String({ description: "null: it was erased" })),
    createdAt: Time,
    erasesAt: Type.String({ format: "date-time", description: "When it is erased for good" }),
    completedAt: Nullable(Type.String({ format: "date-time", description: "When it was erased or restored" })),
  },
  {
    title: "Deletion",
    examples: [
      {
        id: "0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
        kind: "prompt",
        subjectId: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11",
        title: "Upload a file",
        counts: { prompts: 1, runs: 40, reports: 38 },
        status: "pending",
        deletedBy: 'the API key "ci"',
        createdAt: "2026-11-21T09:30:00.000Z",
        erasesAt: "2026-11-22T09:30:00.000Z",
        completedAt: null,
      },
    ],
  },
);
export type Deletion = Static<typeof Deletion>;

const days = (description: string) =>
  Nullable(
    Type.Integer({ minimum: 1, maximum: 36500, description: `${description}; null: the default of the server` }),
  );

/** How long an organization keeps what it stores, in days. */
export const Retention = Type.Object(
  {
    sessions: days("Events of sessions"),
    artifacts: days("Screenshots and files of sessions, at most as long as their sessions"),
    reports: days("Runs with their reports"),
    deliveries: days("Notifications and their deliveries"),
    people: days("Names and addresses of people, once they left"),
  } satisfies Record<(typeof keptKinds)[number], unknown>,
  { title: "Retention", examples: [{ sessions: 30, artifacts: 7, reports: null, deliveries: 30, people: 90 }] },
);
export type Retention = Static<typeof Retention>;

export const RetentionPatch = Type.Partial(Retention, { title: "RetentionPatch" });
