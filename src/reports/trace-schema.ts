import { type Static, Type } from "@sinclair/typebox";
import { eventSources, eventTypes } from "../agents/agent.ts";
import { Nullable, OneOf, Time } from "../schema.ts";

const TraceEvent = Type.Object(
  {
    seq: Type.Integer({ minimum: 0 }),
    at: Time,
    tMs: Type.Integer({ description: "Milliseconds since the start of the session" }),
    type: OneOf(eventTypes),
    source: OneOf(eventSources),
  },
  { title: "TraceEvent", additionalProperties: true, description: "Other fields depend on the type" },
);

export const Trace = Type.Object(
  {
    events: Type.Array(TraceEvent),
    total: Type.Integer({ description: "Number of matching events" }),
    nextSeq: Nullable(Type.Integer({ description: "fromSeq of the next page; null on the last page" })),
    notice: Nullable(Type.String({ description: "Why events are missing; null if none are" })),
  },
  { title: "Trace" },
);
export type Trace = Static<typeof Trace>;

/** Filters of session events, for REST and pages. */
export const traceQuery = {
  types: Type.Optional(Type.String({ description: `Event types, separated by commas: ${eventTypes.join(", ")}` })),
  source: Type.Optional(OneOf(eventSources, "Component that recorded the event")),
  tool: Type.Optional(Type.String({ maxLength: 200, description: "Only calls to this tool and their results" })),
  failed: Type.Optional(OneOf(["1"], "1: errors only")),
  fromSeq: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
  beforeSeq: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000_000,
      description: "Instead of fromSeq: the last events before this seq",
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Only events with this text" })),
};
const TraceQuery = Type.Object(traceQuery);
export type TraceQuery = Static<typeof TraceQuery>;
