import { type Static, Type } from "@sinclair/typebox";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

export const fixStatuses = ["running", "verified", "did_not_help", "undecided", "reopened"] as const;

const Side = Type.Object({
  evalRequestId: Id,
  runs: Type.Integer(),
  met: Type.Integer({ description: "Runs that met any of its friction" }),
  score: Nullable(Type.Number({ description: "Mean" })),
});

export const Fix = Type.Object(
  {
    id: Id,
    promptId: Id,
    title: Type.String(),
    fingerprints: Type.Array(Type.String(), { description: "Of the friction that it was to remove" }),
    doneBy: Type.String(),
    doneAt: Time,
    note: Nullable(Type.String()),
    status: OneOf(
      fixStatuses,
      "running: its runs have not ended; verified: they came by and met none of it; did_not_help: they met it again; undecided: see reason; reopened: verified, and met again later",
    ),
    reason: Type.String(),
    before: Side,
    after: Side,
    delta: Nullable(
      Type.Object(
        { value: Type.Number(), low: Nullable(Type.Number()), high: Nullable(Type.Number()) },
        { description: "Points that the score gained, with Welch's 95 % interval; null under two scores a side" },
      ),
    ),
  },
  { title: "Fix" },
);
export type Fix = Static<typeof Fix>;

/** What became of a recommendation that was marked done. */
export const Done = Nullable(
  Type.Pick(Fix, ["id", "status", "reason", "doneAt", "doneBy"], { description: "null: not marked done" }),
);
export type Done = Static<typeof Done>;
