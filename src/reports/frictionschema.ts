import { type Static, Type } from "@sinclair/typebox";
import { frictionStates, severities } from "../grading/kinds.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";
import { FrictionPoint } from "./schema.ts";

/** A friction over the runs of a prompt or of a provider's prompts, as the newest report tells it. */
export const FrictionThing = Type.Object(
  {
    ...FrictionPoint.properties,
    slug: Type.String({ description: "The newest report that shows it" }),
    isPreview: Type.Boolean({ description: "Met by runs with a urlMap only: it never stood in the live docs" }),
    firstSeenAt: Time,
    lastSeenAt: Time,
    fixedAt: Nullable(Time),
    cost: Type.Object(
      { points: Nullable(Type.Number()), seconds: Nullable(Type.Number()), usd: Nullable(Type.Number()) },
      { description: "Over all runs that met it; null: unknown" },
    ),
    promptIds: Type.Array(Id),
  },
  { title: "FrictionThing" },
);
export type FrictionThing = Static<typeof FrictionThing>;

export const FrictionDetail = Type.Object(
  {
    ...FrictionThing.properties,
    prompts: Type.Array(
      Type.Object({
        promptId: Id,
        state: OneOf(frictionStates),
        since: Type.Object(
          { met: Type.Integer(), of: Type.Integer(), missed: Type.Integer() },
          {
            description:
              "Since it came, or came back: runs that met it, of those that came by; then missed by so many in a row",
          },
        ),
        evaluations: Type.Array(Type.Object({ evalRequestId: Id, at: Time, met: Type.Integer(), of: Type.Integer() }), {
          description: "The newest 30, oldest first",
        }),
      }),
    ),
  },
  { title: "FrictionDetail" },
);
export type FrictionDetail = Static<typeof FrictionDetail>;

/** Of one prompt, or of all prompts of a provider. */
export const scopeQuery = {
  promptId: Type.Optional(Type.String({ format: "uuid", description: "Of this prompt" })),
  providerId: Type.Optional(Type.String({ format: "uuid", description: "Of all prompts of this provider" })),
};
const Scope = Type.Object(scopeQuery);
export type Scope = Static<typeof Scope>;

export const frictionFilter = {
  ...scopeQuery,
  severity: Type.Optional(OneOf(severities)),
  state: Type.Optional(OneOf(frictionStates)),
};
const FrictionFilter = Type.Object(frictionFilter);
export type FrictionFilter = Static<typeof FrictionFilter>;
