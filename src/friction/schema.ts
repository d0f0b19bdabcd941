import { type Static, Type } from "@sinclair/typebox";
import { FieldFriction, FrictionCategory } from "../field/schema.ts";
import { frictionStates, phases, severities } from "../grading/kinds.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";
import { Dismissed } from "./dismissals.ts";

export const FrictionPoint = Type.Object(
  {
    id: Id,
    fingerprint: Type.String({ description: "The same in all runs" }),
    severity: OneOf(severities),
    phase: OneOf(phases),
    category: FrictionCategory,
    title: Type.String(),
    description: Type.String(),
    quote: Nullable(Type.String({ description: "Quoted from the site under test" })),
    url: Nullable(Type.String()),
    onPath: Type.Boolean({
      description: "false: elsewhere in the docs",
    }),
    events: Type.Array(Type.Integer(), { minItems: 1, description: "seq of the trace events that prove it" }),
    lostSeconds: Nullable(Type.Number()),
    lostUsd: Nullable(Type.Number()),
    lostPoints: Nullable(Type.Number({ description: "Score points; null: not measured" })),
    seenIn: Type.Object(
      { runs: Type.Integer(), of: Type.Integer() },
      { title: "SeenIn", description: "Published runs that hit it, of those that could" },
    ),
    state: OneOf(frictionStates),
    dismissed: Dismissed,
  },
  { title: "FrictionPoint" },
);
export type FrictionPoint = Static<typeof FrictionPoint>;

/** A friction point over the runs of a prompt or of a provider's prompts, according to its newest report. */
export const FrictionSummary = Type.Object(
  {
    ...FrictionPoint.properties,
    slug: Type.String({ description: "Latest report that contains it" }),
    isPreview: Type.Boolean({ description: "Only seen in runs with a urlMap, never in the live docs" }),
    firstSeenAt: Time,
    lastSeenAt: Time,
    fixedAt: Nullable(Time),
    cost: Type.Object(
      { points: Nullable(Type.Number()), seconds: Nullable(Type.Number()), usd: Nullable(Type.Number()) },
      { description: "Total over all runs that hit it; null: unknown" },
    ),
    promptIds: Type.Array(Id),
    agents: Type.Array(Type.String(), { description: "Agents whose runs hit it" }),
  },
  { title: "FrictionSummary" },
);
export type FrictionSummary = Static<typeof FrictionSummary>;

export const FrictionDetail = Type.Object(
  {
    ...FrictionSummary.properties,
    field: Type.Array(Type.Pick(FieldFriction, ["id", "title", "reports", "lastReportedAt"]), {
      description: "Open field friction at the same place: unverified reports of agents outside of runs",
    }),
    prompts: Type.Array(
      Type.Object({
        promptId: Id,
        state: OneOf(frictionStates),
        since: Type.Object(
          { met: Type.Integer(), of: Type.Integer(), missed: Type.Integer() },
          {
            description:
              "Since it first appeared or reappeared: runs that hit it, runs that reached its page, and how many in a row have missed it since",
          },
        ),
        evaluations: Type.Array(Type.Object({ evalRequestId: Id, at: Time, met: Type.Integer(), of: Type.Integer() }), {
          description: "Latest 30, oldest first",
        }),
      }),
    ),
  },
  { title: "FrictionDetail" },
);
export type FrictionDetail = Static<typeof FrictionDetail>;

/** For one prompt, or for all prompts of a provider. */
export const scopeQuery = {
  promptId: Type.Optional(Type.String({ format: "uuid", description: "Only this prompt" })),
  providerId: Type.Optional(Type.String({ format: "uuid", description: "All prompts of this provider" })),
};
const Scope = Type.Object(scopeQuery);
/** `everything`: all prompts of the organization, for pages. */
export type Scope = Static<typeof Scope> & { everything?: true };

export const frictionFilter = {
  ...scopeQuery,
  severity: Type.Optional(OneOf(severities)),
  state: Type.Optional(OneOf(frictionStates)),
  agent: Type.Optional(Type.String({ maxLength: 100, description: "Only friction that runs of this agent hit" })),
  dismissed: Type.Optional(OneOf(["true", "false"], "true: only dismissed friction points; default: all others")),
};
const FrictionFilter = Type.Object(frictionFilter);
export type FrictionFilter = Static<typeof FrictionFilter> & { everything?: true };
