import { type Static, Type } from "@sinclair/typebox";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

export const fixStatuses = ["running", "verified", "did_not_help", "undecided", "reopened"] as const;

const Side = Type.Object({
  evalRequestId: Id,
  runs: Type.Integer(),
  met: Type.Integer({ description: "Runs that hit any of its friction points" }),
  score: Nullable(Type.Number({ description: "Mean" })),
});

export const Fix = Type.Object(
  {
    id: Id,
    promptId: Id,
    title: Type.String(),
    fingerprints: Type.Array(Type.String(), { description: "Fingerprint of the friction point to fix" }),
    doneBy: Type.String(),
    createdAt: Time,
    note: Nullable(Type.String()),
    status: OneOf(
      fixStatuses,
      "running: its runs have not ended; verified: they reached the same pages without hitting it; did_not_help: they hit it again; undecided: see reason; reopened: verified, then hit again later",
    ),
    reason: Type.String(),
    before: Side,
    after: Side,
    delta: Nullable(
      Type.Object(
        { value: Type.Number(), low: Nullable(Type.Number()), high: Nullable(Type.Number()) },
        { description: "Score change in points, with Welch's 95% interval; null with fewer than two scores per side" },
      ),
    ),
  },
  { title: "Fix" },
);
export type Fix = Static<typeof Fix>;

/** The verification of a recommended fix that was marked done. */
export const FixState = Nullable(
  Type.Pick(Fix, ["id", "status", "reason", "createdAt", "doneBy"], {
    title: "FixState",
    description: "null: not marked as done",
  }),
);
export type FixState = Static<typeof FixState>;
