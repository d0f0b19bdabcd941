import type { Context, OrgId } from "../context.ts";
import { insertStatement } from "../db/rows.ts";
import { type AuditChange, type actorKinds, auditEntries } from "../db/tables/audit.ts";
import { addressOf, normalizeIp } from "../http/address.ts";
import { type Caller, findRequestState, isCommandLine } from "../http/caller.ts";
import { findCurrentRequest } from "../http/current-request.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { mapTexts } from "../redaction/texts.ts";
import type { AuditAction } from "./actions.ts";

/** Who does something. `id`: of the person, API key or trust; null for the others. */
type Actor = { kind: (typeof actorKinds)[number]; id: string | null; name: string };

/** What an entry is about, under its name at that time. */
type AuditTarget = { id?: string | null; name?: string | null };

const insertEntry = insertStatement(auditEntries);
const redaction = createRedaction();
/** Characters of a value that an entry keeps: enough to recognize a text. */
const maxValueChars = 500;

/**
 * Adds an entry to the audit log. Call it within the transaction of the change, so that both are stored or neither is. The actor and the address come
 * from the request that is being served. Without a request, the actor is the operator or the service itself. `org` null: the entry is about the
 * service as a whole. `changes`: from `changesOf`; they must not contain secrets.
 */
export function recordAudit(
  ctx: Context,
  org: OrgId | null,
  action: AuditAction,
  target: AuditTarget = {},
  changes: AuditChange[] = [],
): void {
  const request = findCurrentRequest();
  const createdAt = ctx.now();
  const actor = toActor(ctx, request);
  insertEntry(ctx.db)({
    id: ctx.newId(createdAt),
    orgId: org,
    createdAt,
    actorKind: actor.kind,
    actorId: actor.id,
    actorName: actor.name,
    // A command on this machine also sends requests, but only to itself.
    ipAddress: request && actor.kind !== "operator" ? normalizeIp(addressOf(request)) : null,
    userAgent: request?.headers.get("user-agent")?.slice(0, 300) ?? null,
    requestId: (request && findRequestState(request)?.id) ?? null,
    action,
    targetId: target.id ?? null,
    targetName: target.name?.slice(0, maxValueChars) ?? null,
    changes: changes.length === 0 ? null : changes,
  });
}

function toActor({ operator }: Context, request: Request | undefined): Actor {
  const { actor, caller } = (request && findRequestState(request)) ?? {};
  if (actor) return actor;
  if (caller && !isCommandLine(caller)) return toActorOfKey(caller);
  if (operator !== null) return { kind: "operator", id: null, name: operator };
  return request ? { kind: "anonymous", id: null, name: "" } : { kind: "service", id: null, name: "evald" };
}

/** A CI job gets a new key each time, so its trust stands for it. */
const toActorOfKey = ({ keyId, name, trustId }: Caller): Actor =>
  trustId === null ? { kind: "key", id: keyId, name } : { kind: "trust", id: trustId, name };

/**
 * The fields that differ between two values of one object, in the order of `after`. `secrets`: the fields whose values are not kept. A field that is
 * missing from `after` counts as unchanged. Long texts are shortened, and secrets of known shapes are removed.
 */
export function changesOf(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  { secrets = [], ignored = ["updatedAt"] }: { secrets?: readonly string[]; ignored?: readonly string[] } = {},
): AuditChange[] {
  return Object.entries(after)
    .filter(([field, value]) => value !== undefined && !ignored.includes(field))
    .filter(([field, value]) => !Bun.deepEquals(before[field] ?? null, value ?? null))
    .map(([field, value]) =>
      secrets.includes(field)
        ? { field }
        : { field, before: toKeptValue(field, before[field] ?? null), after: toKeptValue(field, value) },
    );
}

/** A value without secrets; a long one as the beginning of its text. */
function toKeptValue(field: string, value: unknown): unknown {
  const clean = (text: string, name: string) => redaction.clean(text, name);
  const cleanValue = mapTexts(value, clean, { key: field });
  const text = typeof cleanValue === "string" ? cleanValue : (JSON.stringify(cleanValue) ?? "");
  return text.length <= maxValueChars ? cleanValue : `${text.slice(0, maxValueChars).toWellFormed()}…`;
}
