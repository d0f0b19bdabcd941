import { type Static, Type } from "@sinclair/typebox";
import { backupStatuses } from "../db/tables/backups.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

const Count = Type.Integer({ minimum: 0 });

/** One try of the service to back itself up. */
export const Backup = Type.Object(
  {
    id: Id,
    requestedBy: Nullable(Type.String({ description: "null: the schedule" })),
    status: OneOf(backupStatuses, "completed: it was restored and checked"),
    location: Nullable(Type.String()),
    bytes: Nullable(Count),
    runs: Nullable(Count),
    failure: Nullable(Type.String()),
    createdAt: Time,
    startedAt: Nullable(Time),
    completedAt: Nullable(Time),
    removedAt: Nullable(Type.String({ format: "date-time", description: "When its file was deleted" })),
    deletedSince: Nullable(
      Type.Object(
        { organizations: Count, prompts: Count, runs: Count },
        { description: "What was deleted since, and is still in it; null: there is no file" },
      ),
    ),
  },
  {
    title: "Backup",
    examples: [
      {
        id: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
        requestedBy: null,
        status: "completed",
        location: "s3://acme-backups/evald/evald-2026-11-21T03-00-00Z.backup",
        bytes: 198311936,
        runs: 100000,
        failure: null,
        createdAt: "2026-11-21T03:00:00.000Z",
        startedAt: "2026-11-21T03:00:00.000Z",
        completedAt: "2026-11-21T03:00:31.000Z",
        removedAt: null,
        deletedSince: { organizations: 2, prompts: 0, runs: 14 },
      },
    ],
  },
);
export type Backup = Static<typeof Backup>;
