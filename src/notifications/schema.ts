import { type Static, Type } from "@sinclair/typebox";
import { deliveryFailures, deliveryStatuses, destinationKinds, disableReasons } from "../db/tables/notifications.ts";
import { HttpUrl, Id, mapOf, Nullable, notBlank, OneOf, Time } from "../schema.ts";
import { events, eventTypes, subscribableTypes } from "./events.ts";

const name = Type.String({ minLength: 1, maxLength: 200, ...notBlank, description: "Name of the destination" });
const url = HttpUrl(
  "Webhook: where events are posted; https, unless EVALD_ALLOW_PRIVATE lists the host. Slack: URL of the incoming webhook",
);
const EventType = { ...OneOf(eventTypes), title: "EventType" };
const EventTypes = Type.Array(OneOf(subscribableTypes), {
  title: "SubscribedEvents",
  minItems: 1,
  uniqueItems: true,
  description: "Events to send",
});
const headers = mapOf(Type.String({ maxLength: 2000 }), {
  maxProperties: 50,
  description: "Webhook: headers to send with each request, such as Authorization. Stored encrypted, never shown again",
});
const recipients = Nullable(
  Type.Array(Type.String({ maxLength: 320 }), {
    minItems: 1,
    maxItems: 50,
    description: "Email: addresses of members; null: all owners",
  }),
);

const status = OneOf(["active", "disabled"], "disabled: events are not sent to it");

export const DestinationInput = Type.Object(
  {
    kind: OneOf(destinationKinds),
    name: Type.Optional(name),
    url: Type.Optional(url),
    events: EventTypes,
    headers: Type.Optional(headers),
    recipients: Type.Optional(recipients),
    status: Type.Optional(status),
  },
  {
    title: "DestinationInput",
    examples: [
      {
        kind: "webhook",
        name: "CI",
        url: "https://ci.example.com/hooks/evald",
        events: ["run.completed", "friction.regressed"],
        headers: { Authorization: "Bearer 3c9d" },
      },
    ],
  },
);
export type DestinationInput = Static<typeof DestinationInput>;

export const DestinationPatch = Type.Object(
  {
    name: Type.Optional(name),
    url: Type.Optional({
      ...url,
      description: `${url.description}. At another origin, a webhook loses its headers and gets a new signing secret`,
    }),
    events: Type.Optional(EventTypes),
    headers: Type.Optional(headers),
    recipients: Type.Optional(recipients),
    status: Type.Optional(status),
  },
  { title: "DestinationPatch", examples: [{ events: ["gate.decided"], status: "active" }] },
);
export type DestinationPatch = Static<typeof DestinationPatch>;

const destination = {
  id: Id,
  kind: OneOf(destinationKinds),
  name: Type.String(),
  url: Nullable(Type.String({ description: "Of Slack only the origin, because the rest is secret; null: email" })),
  headers: Type.Array(Type.String(), { description: "Names of its own headers" }),
  recipients: Nullable(
    Type.Array(Type.String(), {
      description: "Email: addresses of members; empty for API keys without the scope write",
    }),
  ),
  events: Type.Array(EventType),
  status,
  disabledBecause: Nullable(
    OneOf(
      disableReasons,
      "request: by a person; gone: it returned 410; failing: all tries of a delivery failed, and no other succeeded in the meantime",
    ),
  ),
  disabledAt: Nullable(Time),
  failingSince: Nullable(Type.String({ format: "date-time", description: "First failed try since the last success" })),
  overlapUntil: Nullable(
    Type.String({ format: "date-time", description: "Until then, requests are also signed with the previous secret" }),
  ),
  createdAt: Time,
};
const example = {
  id: "0199f3a5-7a3e-7c11-8b2d-4f5e6d7c8b9a",
  kind: "webhook",
  name: "CI",
  url: "https://ci.example.com/hooks/evald",
  headers: ["Authorization"],
  recipients: null,
  events: ["run.completed", "friction.regressed"],
  status: "active",
  disabledBecause: null,
  disabledAt: null,
  failingSince: null,
  overlapUntil: null,
  createdAt: "2026-11-21T09:30:00.000Z",
};

export const Destination = Type.Object(destination, { title: "Destination", examples: [example] });
export type Destination = Static<typeof Destination>;

export const NewDestination = Type.Object(
  {
    ...destination,
    secret: Nullable(
      Type.String({
        description:
          "New signing secret of a webhook. It is shown only once. null: not a webhook, or the signing secret didn't change",
      }),
    ),
  },
  { title: "NewDestination", examples: [{ ...example, secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5dz1Nnjnqks=" }] },
);
export type NewDestination = Static<typeof NewDestination>;

const delivery = {
  id: Id,
  notificationId: Type.String({
    format: "uuid",
    description: "The webhook-id that the receiver gets: the same in all tries and replays",
  }),
  type: EventType,
  status: OneOf(deliveryStatuses),
  failure: Nullable(
    OneOf(
      deliveryFailures,
      "exhausted: all tries failed; gone: the receiver returned 410; disabled: the destination was disabled; interrupted: the service crashed too often; deleted: something that it is about was deleted before it was sent",
    ),
  ),
  tries: Type.Integer(),
  lastStatus: Nullable(Type.Integer({ description: "HTTP status of the last try; null: no response" })),
  lastMs: Nullable(Type.Integer({ description: "Duration of the last try" })),
  nextTryAt: Nullable(Type.String({ format: "date-time", description: "null: now, or none" })),
  createdAt: Time,
  completedAt: Nullable(Time),
};
const deliveryExample = {
  id: "0199f3a6-0b1c-7d22-9e3f-5a6b7c8d9e0f",
  notificationId: "0199f3a6-0b1b-7a11-8c2d-1e2f3a4b5c6d",
  type: "run.completed",
  status: "delivered",
  failure: null,
  tries: 1,
  lastStatus: 204,
  lastMs: 83,
  nextTryAt: null,
  createdAt: "2026-11-21T09:31:00.000Z",
  completedAt: "2026-11-21T09:31:00.000Z",
};

export const Delivery = Type.Object(delivery, { title: "Delivery", examples: [deliveryExample] });
export type Delivery = Static<typeof Delivery>;

export const DeliveryDetail = Type.Object(
  {
    ...delivery,
    payload: Type.Object(
      { type: EventType, timestamp: Time, data: Type.Object({}, { additionalProperties: true }) },
      { description: "What a webhook receives" },
    ),
    log: Type.Array(
      Type.Object({
        attempt: Type.Integer(),
        at: Time,
        ms: Type.Integer({ description: "Duration" }),
        status: Nullable(Type.Integer({ description: "HTTP status; null: no response" })),
        body: Nullable(Type.String({ description: "First 1,000 characters of the response body" })),
        error: Nullable(Type.String({ description: "Why it failed, if the status does not say; null: it does" })),
      }),
      { description: "Its tries, oldest first" },
    ),
  },
  {
    title: "DeliveryDetail",
    examples: [
      {
        ...deliveryExample,
        payload: {
          type: "run.completed",
          timestamp: "2026-11-21T09:31:00.000Z",
          data: events["run.completed"].example,
        },
        log: [{ attempt: 1, at: "2026-11-21T09:31:00.000Z", ms: 83, status: 204, body: null, error: null }],
      },
    ],
  },
);
export type DeliveryDetail = Static<typeof DeliveryDetail>;

export const ReplayResult = Type.Object(
  {
    replayed: Type.Integer({
      description:
        "Deliveries that are sent now: those that waited for their next try, and the failed ones whose event was not delivered later, oldest first, at most 1,000",
    }),
  },
  { title: "ReplayResult", examples: [{ replayed: 12 }] },
);
export type ReplayResult = Static<typeof ReplayResult>;
