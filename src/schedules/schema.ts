import { type Static, Type } from "@sinclair/typebox";
import { slotOutcomes } from "../db/tables/slots.ts";
import { runExample } from "../runs/schema.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

/** A time at which a scheduled prompt was due. */
export const Slot = Type.Object(
  {
    scheduledAt: Time,
    outcome: OneOf(
      slotOutcomes,
      "ran; missed: the service was down; skipped_overlap: runs of an earlier slot were still active; failed: its runs could not be requested",
    ),
    evalRequestId: Nullable(Id),
    reason: Nullable(Type.String({ description: "Why it did not run" })),
    createdAt: Time,
  },
  {
    title: "Slot",
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
export type Slot = Static<typeof Slot>;
