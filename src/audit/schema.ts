import { type Static, Type } from "@sinclair/typebox";
import { actorKinds } from "../db/tables/audit.ts";
import { Id, Moment, Nullable, OneOf, Time } from "../schema.ts";
import { type AuditAction, auditActions } from "./actions.ts";

const action = { ...OneOf(Object.keys(auditActions) as AuditAction[]), title: "AuditAction" };

export const AuditEntry = Type.Object(
  {
    id: Id,
    createdAt: Time,
    actor: Type.Object(
      {
        kind: OneOf(actorKinds),
        id: Nullable(Type.String({ description: "ID of the person, API key or trust" })),
        name: Type.String({ description: "Name at that time" }),
      },
      { description: "Who did it" },
    ),
    action,
    target: Type.Object(
      { kind: Type.String(), id: Nullable(Type.String()), name: Nullable(Type.String()) },
      { description: "What it was done to, under its name at that time" },
    ),
    changes: Type.Array(
      Type.Object({
        field: Type.String(),
        before: Type.Optional(Type.Unknown()),
        after: Type.Optional(Type.Unknown()),
      }),
      { description: "Changed fields. Secrets have no values; long texts are shortened" },
    ),
    ipAddress: Nullable(Type.String()),
    userAgent: Nullable(Type.String()),
    requestId: Nullable(Type.String({ description: "ID of the request in the server log" })),
  },
  { title: "AuditEntry" },
);
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditLog = Type.Object(
  {
    entries: Type.Array(AuditEntry, { description: "Newest first" }),
    nextBefore: Nullable(Type.String({ description: "Pass it as before for the next page; null: this is the last" })),
  },
  { title: "AuditLog" },
);
export type AuditLog = Static<typeof AuditLog>;

export const auditFilter = {
  actor: Type.Optional(Type.String({ maxLength: 100, description: "ID of a person, API key or trust" })),
  action: Type.Optional(action),
  since: Type.Optional(Moment("Only entries at or after this time")),
  until: Type.Optional(Moment("Only entries before this time")),
};
const AuditFilter = Type.Object(auditFilter);
export type AuditFilter = Static<typeof AuditFilter>;

/** `before`: any ID, even one that no entry has. Older entries have smaller IDs. */
export const auditCursor = {
  before: Type.Optional(Type.String({ maxLength: 36, description: "ID of an entry: only older ones" })),
};

export const auditFormats = ["csv", "jsonl"] as const;
export type AuditFormat = (typeof auditFormats)[number];
