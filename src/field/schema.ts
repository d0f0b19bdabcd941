import { type Static, Type } from "@sinclair/typebox";
import { fieldStates } from "../db/tables/field.ts";
import { frictionCategories } from "../grading/kinds.ts";
import { Id, Nullable, notBlank, OneOf, Time } from "../schema.ts";

const text = { minLength: 1, ...notBlank };
export const FrictionCategory = { ...OneOf(frictionCategories), title: "FrictionCategory" };

/** What an agent in the field reports, over REST and MCP. */
export const frictionReport = {
  where: Type.String({
    ...text,
    maxLength: 1000,
    description: "URL of the page or endpoint; otherwise the command, function or setting",
  }),
  tried: Type.String({ ...text, maxLength: 2000, description: "What you tried to do, and how" }),
  happened: Type.String({ ...text, maxLength: 2000, description: "What happened instead. Quote error messages" }),
  category: Type.Optional(OneOf(frictionCategories)),
  agent: Type.Optional(Type.String({ maxLength: 100, description: "Your name and version" })),
};
const Input = Type.Object(frictionReport);
export type FrictionReport = Static<typeof Input>;

export const FrictionReportInput = Type.Object(frictionReport, {
  title: "FrictionReportInput",
  examples: [
    {
      where: "https://docs.example.com/upload",
      tried: "Uploaded a file with client.files.upload(path) as in the sample.",
      happened: "AttributeError: 'Client' object has no attribute 'files'",
      category: "broken_sample",
      agent: "claude-code 2.1",
    },
  ],
});

export const Received = Type.Object(
  { id: Id, receivedAt: Time },
  { title: "ReceivedFrictionReport", description: "The report was stored" },
);
export type Received = Static<typeof Received>;

export const FieldFriction = Type.Object(
  {
    id: Id,
    title: Type.String({ description: "Start of the first report" }),
    category: FrictionCategory,
    where: Type.String(),
    state: OneOf(fieldStates, "regressed: reported again after it was resolved"),
    isVerified: Type.Boolean({ description: "Whether a published run hit friction at the same place" }),
    friction: Type.Array(Type.String(), { description: "Fingerprints of that friction, for GET /friction" }),
    reports: Type.Integer({ minimum: 1, description: "Number of reports" }),
    firstReportedAt: Time,
    lastReportedAt: Time,
    reason: Nullable(Type.String({ description: "Why it was resolved or dismissed" })),
    changedBy: Nullable(Type.String()),
    changedAt: Nullable(Time),
  },
  { title: "FieldFriction", description: "Friction that agents reported outside of runs" },
);
export type FieldFriction = Static<typeof FieldFriction>;

export const FieldFrictionDetail = Type.Object(
  {
    ...FieldFriction.properties,
    latest: Type.Array(
      Type.Object({
        id: Id,
        tried: Type.String(),
        happened: Type.String(),
        agent: Nullable(Type.String()),
        createdAt: Time,
      }),
      { description: "The newest reports, newest first, at most 20" },
    ),
  },
  { title: "FieldFrictionDetail" },
);
export type FieldFrictionDetail = Static<typeof FieldFrictionDetail>;

export const FieldFrictionChange = Type.Object(
  {
    state: OneOf(["open", "resolved", "dismissed"] as const),
    reason: Type.Optional(
      Nullable(
        Type.String({ maxLength: 2000, description: "Why. Required to dismiss it, dropped when it is reopened" }),
      ),
    ),
  },
  { title: "FieldFrictionChange", examples: [{ state: "resolved", reason: "The sample uses the new client." }] },
);
export type FieldFrictionChange = Static<typeof FieldFrictionChange>;

export const fieldFilter = {
  state: Type.Optional(OneOf(fieldStates, "Default: all but dismissed")),
  verified: Type.Optional(OneOf(["true", "false"], "true: only what runs hit as well; false: only the rest")),
  category: Type.Optional(FrictionCategory),
};
const Filter = Type.Object(fieldFilter);
export type FieldFilter = Static<typeof Filter>;
