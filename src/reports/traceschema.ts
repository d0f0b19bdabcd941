import { type Static, Type } from "@sinclair/typebox";
import { eventSources, eventTypes } from "../agents/agent.ts";
import { Nullable, OneOf, Time } from "../schema.ts";

const TraceEvent = Type.Object(
  {
    seq: Type.Integer({ minimum: 0 }),
    at: Time,
    tMs: Type.Integer({ description: "Milliseconds since the session began" }),
    type: OneOf(eventTypes),
    source: OneOf(eventSources),
  },
  { title: "TraceEvent", additionalProperties: true, description: "The other fields are those of the type" },
);

export const Trace = Type.Object(
  {
    events: Type.Array(TraceEvent),
    total: Type.Integer({ description: "Events that match" }),
    nextSeq: Nullable(Type.Integer({ description: "fromSeq of the next page; null at the end" })),
    notice: Nullable(Type.String({ description: "Why events are missing" })),
  },
  { title: "Trace" },
);
export type Trace = Static<typeof Trace>;

/** Which events of a session are meant: the same for REST and pages. */
export const traceQuery = {
  types: Type.Optional(Type.String({ description: `Event types, separated by commas: ${eventTypes.join(", ")}` })),
  source: Type.Optional(OneOf(eventSources, "Who vouches for an event")),
  tool: Type.Optional(Type.String({ maxLength: 200, description: "Only calls of this tool and their results" })),
  failed: Type.Optional(OneOf(["1"], "1: only what went wrong")),
  fromSeq: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
  beforeSeq: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: "Instead of fromSeq: the last events before it" }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Text that an event must contain" })),
};
const TraceQuery = Type.Object(traceQuery);
export type TraceQuery = Static<typeof TraceQuery>;
