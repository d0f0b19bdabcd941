import { and, count, desc, eq, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { listMemberEmails } from "../auth/members.ts";
import type { Context, OrgId } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { earlierAttempts, jobs } from "../db/tables/jobs.ts";
import { deliveries, deliveryTries, destinations, type disableReasons } from "../db/tables/notifications.ts";
import { badRequest, checkAll, conflict, invalidField, notFound } from "../errors.ts";
import { toIso, toName } from "../schema.ts";
import type { EventType } from "./events.ts";
import { checkFields, checkHeaders, checkRecipients, checkUrl } from "./fields.ts";
import type { Destination, DestinationInput, DestinationPatch, NewDestination } from "./schema.ts";
import { requireSecretKey, sealContent, unsealContent, unsealContentOrThrow } from "./secrets.ts";
import { newSecret } from "./signing.ts";

const maxDestinations = 20;
/** For this long after a rotation, requests are signed with both secrets. */
const secretOverlapMs = 24 * 3600_000;
const enabledFields = { disabledAt: null, disableReason: null, failingSince: null };

export type DestinationRow = typeof destinations.$inferSelect;

/** Throws not_found. */
export function getDestinationRow(ctx: Context, org: OrgId, id: string): DestinationRow {
  const row = ctx.db.select().from(destinations).where(whereDestination(org, id)).get();
  if (!row) throw notFound(`No destination has the ID ${id}.`);
  return row;
}

/** Newest first. */
export const listDestinations = (ctx: Context, org: OrgId): Destination[] =>
  ctx.db
    .select()
    .from(destinations)
    .where(eq(destinations.orgId, org))
    .orderBy(desc(destinations.id))
    .all()
    .map((row) => toDestination(ctx, row));

/** Throws not_found. */
export const getDestination = (ctx: Context, org: OrgId, id: string): Destination =>
  toDestination(ctx, getDestinationRow(ctx, org, id));

/**
 * A destination without the email addresses of its recipients, for API keys that can only read. `recipients` stays null if the recipients are all
 * owners.
 */
export const withoutAddresses = (destination: Destination): Destination => ({
  ...destination,
  recipients: destination.recipients && [],
});

/**
 * Creates a destination. The signing secret of a webhook is returned only here. Throws bad_request, and conflict if the organization has too many
 * destinations.
 */
export function createDestination(ctx: Context, org: OrgId, input: DestinationInput): NewDestination {
  const { row, secret } = newDestinationRow(ctx, org, input, ctx.newId(ctx.now()));
  transaction(ctx.db, (tx) => {
    const total = tx.select({ n: count() }).from(destinations).where(eq(destinations.orgId, org)).get()?.n ?? 0;
    if (total >= maxDestinations)
      throw conflict(`The organization has ${maxDestinations} destinations, the maximum. Delete one first.`);
    tx.insert(destinations).values(row).run();
    const { kind, events, recipients } = row;
    recordAudit(ctx, org, "destination.created", row, changesOf({}, { kind, events, recipients }));
  });
  return { ...toDestination(ctx, row), secret };
}

/**
 * Changes a destination. Omitted fields keep their values. But if a webhook moves to another origin, its secrets don't follow: it gets a new signing
 * secret, which is returned only here, and keeps only the headers of `patch`. Throws not_found and bad_request.
 */
export function updateDestination(ctx: Context, org: OrgId, id: string, patch: DestinationPatch): NewDestination {
  const row = getDestinationRow(ctx, org, id);
  checkFields(row.kind, patch);
  const change: Partial<DestinationRow> = {};
  if (patch.name !== undefined) change.name = toName(patch.name);
  if (patch.events) change.events = patch.events;
  if (patch.recipients !== undefined) change.recipients = checkRecipients(listMemberEmails(ctx, org), patch.recipients);
  const url = patch.url === undefined ? undefined : checkUrl(ctx.config, patch.url);
  const headers = patch.headers && checkHeaders(patch.headers);
  if (url) change.url = toShownUrl(row.kind, url);
  const { secret, ...secretFields } = changeSecrets(ctx, row, { url, headers });
  Object.assign(change, secretFields);
  const lacksUrl = row.kind === "slack" && !url && unsealContent(ctx, row)?.url === undefined;
  if (patch.status === "active" && lacksUrl) throw invalidField("url", "is required, because it was not in the import");
  if (patch.status === "active") Object.assign(change, enabledFields);
  if (patch.status === "disabled" && row.disabledAt === null) Object.assign(change, disabledFields(ctx));
  if (Object.keys(change).length > 0)
    transaction(ctx.db, (tx) => {
      tx.update(destinations).set(change).where(whereDestination(org, id)).run();
      // The path of a URL may be a secret.
      const changes = changesOf(row, change, { secrets: ["url", "sealed"], ignored: ["overlapUntil", "failingSince"] });
      recordAudit(ctx, org, "destination.updated", { id: row.id, name: change.name ?? row.name }, changes);
    });
  return { ...toDestination(ctx, { ...row, ...change }), secret };
}

type SecretChange = Partial<Pick<DestinationRow, "sealed" | "overlapUntil">> & {
  /** The new signing secret; null: the secret is unchanged. */
  secret: string | null;
};

/** How a new URL or new headers change the stored secrets of a destination. */
function changeSecrets(
  ctx: Context,
  row: DestinationRow,
  { url, headers }: { url: URL | undefined; headers: Record<string, string> | undefined },
): SecretChange {
  if (url && row.kind === "slack") return { secret: null, sealed: sealContent(ctx, row, { url: url.href }) };
  if (url && row.kind === "webhook" && url.origin !== new URL(row.url ?? "").origin) {
    const secret = newSecret();
    return { secret, sealed: sealContent(ctx, row, { secret, headers: headers ?? {} }), overlapUntil: null };
  }
  if (!headers) return { secret: null };
  return { secret: null, sealed: sealContent(ctx, row, { ...unsealContentOrThrow(ctx, row), headers }) };
}

/** Deletes a destination with its deliveries. Deliveries in progress are ended. Throws not_found. */
export function deleteDestination(ctx: Context, org: OrgId, id: string): Destination {
  const row = getDestinationRow(ctx, org, id);
  const deleted = toDestination(ctx, row);
  transaction(ctx.db, (tx) => {
    const deliveryIds = sql`select id from ${deliveries} where org_id = ${org} and destination_id = ${row.id}`;
    const jobIds = sql`select id from ${jobs} where kind = 'delivery' and subject in (${deliveryIds})`;
    tx.delete(earlierAttempts).where(sql`${earlierAttempts.jobId} in (${jobIds})`).run();
    tx.delete(jobs).where(sql`${jobs.kind} = 'delivery' and ${jobs.subject} in (${deliveryIds})`).run();
    tx.delete(deliveryTries)
      .where(sql`${deliveryTries.orgId} = ${org} and ${deliveryTries.deliveryId} in (${deliveryIds})`)
      .run();
    tx.delete(deliveries)
      .where(and(eq(deliveries.orgId, org), eq(deliveries.destinationId, row.id)))
      .run();
    tx.delete(destinations).where(whereDestination(org, id)).run();
    recordAudit(ctx, org, "destination.deleted", row);
  });
  return deleted;
}

/** Replaces the signing secret of a webhook. For 24 hours, requests are signed with the old secret as well. Throws not_found and bad_request. */
export function rotateDestinationSecret(ctx: Context, org: OrgId, id: string): NewDestination {
  const row = getDestinationRow(ctx, org, id);
  if (row.kind !== "webhook") throw badRequest("Only webhooks have a signing secret.");
  const { secret: previous, ...content } = unsealContentOrThrow(ctx, row);
  const secret = newSecret();
  const change = {
    sealed: sealContent(ctx, row, { ...content, secret, previous }),
    overlapUntil: ctx.now() + secretOverlapMs,
  };
  transaction(ctx.db, (tx) => {
    tx.update(destinations).set(change).where(whereDestination(org, id)).run();
    recordAudit(ctx, org, "destination.secret_rotated", row);
  });
  return { ...toDestination(ctx, { ...row, ...change }), secret };
}

/**
 * The initial state of an imported destination. It is disabled, because its secrets aren't in the file. A webhook gets a new signing secret, and
 * Slack has no URL. Without EVALD_SECRET_KEY, no secrets can be stored, so they have to be added again.
 */
export function newDestinationState(ctx: Context, org: OrgId, { id, kind }: { id: string; kind?: unknown }) {
  const content = kind === "webhook" ? { secret: newSecret() } : {};
  const secrets = ctx.config.secretKey ? sealContent(ctx, { orgId: org, id }, content) : Buffer.alloc(0);
  return { ...disabledFields(ctx), sealed: kind === "email" ? null : secrets };
}

/** Disables a destination, so that nothing is sent to it. */
export function disableDestination(
  ctx: Context,
  tx: Tx,
  row: DestinationRow,
  disableReason: (typeof disableReasons)[number],
): void {
  tx.update(destinations)
    .set({ disabledAt: ctx.now(), disableReason })
    .where(whereDestination(row.orgId as OrgId, row.id))
    .run();
}

const whereDestination = (org: OrgId, id: string) =>
  and(eq(destinations.orgId, org), eq(destinations.id, id.toLowerCase()));

/** The part of a URL that is stored unencrypted. The path of a Slack URL is a secret, so the whole URL is stored only encrypted. */
const toShownUrl = (kind: DestinationRow["kind"], { origin, href }: URL): string =>
  kind === "slack" ? `${origin}/` : href;

const disabledFields = (ctx: Context) => ({ disabledAt: ctx.now(), disableReason: "request" as const });

function toDestination(ctx: Context, row: DestinationRow): Destination {
  const { id, kind, name, url, recipients, events, overlapUntil } = row;
  return {
    id,
    kind,
    name,
    url,
    recipients,
    headers: Object.keys(unsealContent(ctx, row)?.headers ?? {}),
    events: events as EventType[],
    status: row.disabledAt === null ? "active" : "disabled",
    disabledBecause: row.disableReason,
    disabledAt: toIso(row.disabledAt),
    failingSince: toIso(row.failingSince),
    overlapUntil: overlapUntil !== null && overlapUntil > ctx.now() ? toIso(overlapUntil) : null,
    createdAt: toIso(row.createdAt),
  };
}

/** Throws one bad_request that names all problems. */
export function checkDestination(
  ctx: Context,
  org: OrgId,
  input: Pick<DestinationInput, "kind" | "url" | "headers" | "recipients">,
): void {
  const { kind, url, headers = {}, recipients = null } = input;
  const isEmail = kind === "email";
  checkAll(
    () => checkFields(kind, input),
    () => {
      if (url !== undefined) checkUrl(ctx.config, url);
      else if (!isEmail) throw invalidField("url", "is required for webhook and slack");
    },
    () => void checkHeaders(headers),
    () => {
      if (isEmail) checkRecipients(listMemberEmails(ctx, org), recipients);
    },
    () => {
      if (isEmail) requireMail(ctx);
      else requireSecretKey(ctx);
    },
  );
}

function requireMail({ config }: Context): void {
  if (!config.people.mail)
    throw badRequest("Set EVALD_SMTP_URL and EVALD_MAIL_FROM before adding an email destination.");
}

/** A destination that is not stored yet, and its signing secret. Throws bad_request. */
export function newDestinationRow(
  ctx: Context,
  org: OrgId,
  input: DestinationInput,
  id: string,
): { row: DestinationRow; secret: string | null } {
  checkDestination(ctx, org, input);
  const { kind, events, recipients = null } = input;
  const row = { id, orgId: org, kind, url: null, sealed: null, recipients: null, events, createdAt: ctx.now() };
  const state = { ...enabledFields, ...(input.status === "disabled" && disabledFields(ctx)), overlapUntil: null };
  if (kind === "email") {
    const addresses = checkRecipients(listMemberEmails(ctx, org), recipients);
    return { row: { ...row, ...state, name: toName(input.name ?? "Email"), recipients: addresses }, secret: null };
  }
  const url = new URL(input.url ?? "");
  const name = toName(input.name ?? (kind === "slack" ? "Slack" : url.host));
  const secret = kind === "slack" ? null : newSecret();
  const content = secret === null ? { url: url.href } : { secret, headers: input.headers ?? {} };
  const sealed = sealContent(ctx, row, content);
  return { row: { ...row, ...state, name, url: toShownUrl(kind, url), sealed }, secret };
}
