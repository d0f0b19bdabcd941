import { Type } from "@sinclair/typebox";
import { waitingReasons } from "../db/tables/runs.ts";
import { Nullable, OneOf } from "../schema.ts";

/** Why the agent of an active run has not started. */
export const WaitingFor = Type.Object(
  {
    what: OneOf(
      waitingReasons,
      "worker: no connected worker has all of the following; slot: every worker that has is busy",
    ),
    agent: Type.String(),
    sandbox: Type.Boolean({ description: "Whether the run needs a sandbox" }),
    labels: Type.Array(Type.String(), { description: "Worker labels of its prompt" }),
    failsAt: Nullable(
      Type.String({ format: "date-time", description: "When the run fails; null: it waits without limit" }),
    ),
  },
  { title: "WaitingFor", description: "What an active run waits for before its agent starts" },
);
