import { and, count, desc, eq, isNull, lt } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { createKey, deleteExpiredKeysOfTrusts, revokeKeysOfTrust } from "../auth/keys.ts";
import { getOrg, listOrgs } from "../auth/orgs.ts";
import { countExchangeAttempt, recordExchangeSuccess } from "../auth/sign-in-attempts.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { trusts, usedTokens } from "../db/tables/keys.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { identifyActor } from "../http/caller.ts";
import type { Scope } from "../http/operation.ts";
import type { Page, Paged } from "../http/paging.ts";
import { checkHttpUrl, toIso } from "../schema.ts";
import { type CiJob, covers, toCiJob } from "./ci-job.ts";
import { type Claims, findForgery, forgetIssuer, readIdToken, tokenRefused } from "./id-token.ts";
import {
  defaultIssuers,
  defaultMinutes,
  defaultScopes,
  type ExchangedKey,
  type Trust,
  type TrustInput,
} from "./schema.ts";
import { checkTrust } from "./trust-check.ts";

type TrustRow = typeof trusts.$inferSelect;

const maxTrusts = 100;
/** How long keys of jobs are listed after they expired. */
const keptMs = 24 * 3600_000;
const minuteMs = 60_000;

const toTrust = (row: TrustRow): Trust => ({
  id: row.id,
  provider: row.provider,
  issuer: row.issuer,
  repository: row.repository,
  repositoryId: row.repositoryId,
  ref: row.ref,
  environment: row.environment,
  minutes: row.minutes,
  scopes: row.scopes as Scope[],
  createdAt: toIso(row.createdAt),
});

/** Newest first. */
export const listTrusts = (ctx: Context, org: OrgId, { limit, offset }: Page): Paged<Trust> => ({
  items: rowsOf(ctx, org).limit(limit).offset(offset).all().map(toTrust),
  total: ctx.db.select({ n: count() }).from(trusts).where(eq(trusts.orgId, org)).get()?.n ?? 0,
});

/** `createdBy`: ID of the person; null: the operator. Throws bad_request, and conflict at 100 trusts. */
export function createTrust(ctx: Context, org: OrgId, input: TrustInput, createdBy: string | null): Trust {
  const issuer = (input.issuer ?? defaultIssuers[input.provider]).replace(/\/+$/, "");
  checkHttpUrl("issuer", issuer);
  checkTrust(input);
  if (listTrusts(ctx, org, { limit: 1, offset: 0 }).total >= maxTrusts)
    throw conflict(`An organization can have at most ${maxTrusts} trusts. Remove one first.`);
  const createdAt = ctx.now();
  const row: TrustRow = {
    id: ctx.newId(createdAt),
    orgId: org,
    provider: input.provider,
    issuer,
    repository: input.repository,
    repositoryId: input.repositoryId ?? null,
    ref: input.ref ?? null,
    environment: input.environment ?? null,
    scopes: input.scopes ?? defaultScopes,
    minutes: input.minutes ?? defaultMinutes,
    createdAt,
    createdBy,
  };
  transaction(ctx.db, (tx) => {
    tx.insert(trusts).values(row).run();
    const { provider, ref, environment, scopes, minutes } = row;
    const settings = { provider, issuer, ref, environment, scopes, minutes };
    recordAudit(ctx, org, "trust.created", { id: row.id, name: row.repository }, changesOf({}, settings));
  });
  return toTrust(row);
}

/** Deletes a trust and revokes its API keys. Throws not_found. */
export function deleteTrust(ctx: Context, org: OrgId, id: string): Trust {
  const whereTrust = and(eq(trusts.orgId, org), eq(trusts.id, id.toLowerCase()));
  const row = transaction(ctx.db, (tx) => {
    const deleted = tx.delete(trusts).where(whereTrust).returning().get();
    if (!deleted) throw notFound(`No trust has the ID ${id}.`);
    revokeKeysOfTrust(ctx, org, deleted.id);
    recordAudit(ctx, org, "trust.deleted", { id: deleted.id, name: deleted.repository });
    return deleted;
  });
  if (!ctx.db.select().from(trusts).where(eq(trusts.issuer, row.issuer)).get()) forgetIssuer(ctx, row.issuer);
  return toTrust(row);
}

/**
 * An API key for the job with this ID token. Each token works once. `address`: IP address of the client. Strangers learn nothing about the
 * organizations, trusts and issuers of the server, because the error depends only on the token. The log says why it was refused. Throws unauthorized,
 * bad_request and rate_limited.
 */
export async function exchangeToken(
  ctx: Context,
  { token, organization }: { token: string; organization?: string },
  address: string,
): Promise<ExchangedKey> {
  countExchangeAttempt(ctx, address);
  const claims = readIdToken(ctx, token, ctx.baseUrl());
  const refusal = await findRefusal(ctx, token, claims);
  const keyOrRefusal = refusal ?? giveKey(ctx, claims, findExchangeOrg(ctx, organization));
  if (typeof keyOrRefusal === "string") {
    ctx.log.info({ issuer: claims.iss, reason: keyOrRefusal }, "ID token refused");
    throw tokenRefused(describe(claims));
  }
  recordExchangeSuccess(ctx, address);
  return keyOrRefusal;
}

/** Why a token proves nothing. null: it was signed by an issuer that some organization trusts. */
async function findRefusal(ctx: Context, token: string, claims: Claims): Promise<string | null> {
  // This comes before any request, because only owners choose which issuers evald asks for keys.
  const trustOfIssuer = ctx.db.select({ id: trusts.id }).from(trusts).where(eq(trusts.issuer, claims.iss)).get();
  return trustOfIssuer ? await findForgery(ctx, token, claims.iss) : "No organization trusts the issuer.";
}

/** A key of the trust that covers a verified token, or why there is no key. `org` null: no organization has the name in the request. */
function giveKey(ctx: Context, claims: Claims, org: OrgId | null): ExchangedKey | string {
  if (org === null) return "No organization has the name or ID.";
  // Trusts are read after the issuer's response, because one may have been removed in the meantime.
  const trust = rowsOf(ctx, org)
    .all()
    .find((row) => row.issuer === claims.iss && covers(row, toCiJob(row.provider, claims)));
  if (!trust) return "No trust of the organization covers the job.";
  const job = toCiJob(trust.provider, claims);
  return transaction(ctx.db, (tx) => {
    // If the clock is set forward by mistake, no used token may be forgotten, because it could be used again after the clock is right.
    const provenAt = ctx.provenTime.now();
    // Tokens are accepted until some seconds after they expired.
    tx.delete(usedTokens)
      .where(lt(usedTokens.expiresAt, provenAt - minuteMs))
      .run();
    const usedToken = { issuer: claims.iss, jti: claims.jti, expiresAt: Math.ceil(claims.exp * 1000) };
    if (tx.insert(usedTokens).values(usedToken).onConflictDoNothing().returning().all().length === 0)
      throw tokenRefused("The ID token was used before. Request a new one for each exchange.");
    // From the first exchange on, the trust is for this repository only, and not for a later one of the same name.
    if (trust.repositoryId === null && job.repositoryId !== null)
      tx.update(trusts)
        .set({ repositoryId: job.repositoryId })
        .where(and(eq(trusts.id, trust.id), isNull(trusts.repositoryId)))
        .run();
    deleteExpiredKeysOfTrusts(ctx, org, provenAt - keptMs);
    const name = nameOf(trust, job);
    identifyActor({ kind: "trust", id: trust.id, name });
    const { key, apiKey } = createKey(ctx, org, name, {
      lifeMs: trust.minutes * minuteMs,
      scopes: trust.scopes,
      createdBy: trust.createdBy ?? undefined,
      trustId: trust.id,
    });
    const { id, name: orgName } = getOrg(ctx, org);
    return {
      key,
      expiresAt: apiKey.expiresAt as string,
      scopes: trust.scopes as Scope[],
      organization: { id, name: orgName },
    };
  });
}

const rowsOf = (ctx: Context, org: OrgId) =>
  ctx.db.select().from(trusts).where(eq(trusts.orgId, org)).orderBy(desc(trusts.id));

/**
 * The organization of an exchange; null: none has this name or ID. The request must name it unless there is only one organization, because another
 * one may trust the same repository.
 */
function findExchangeOrg(ctx: Context, idOrName: string | undefined): OrgId | null {
  const all = listOrgs(ctx);
  const matches =
    idOrName === undefined ? all : all.filter(({ id, name }) => id === idOrName.toLowerCase() || name === idOrName);
  const [only] = matches;
  if (only && matches.length === 1) return only.id;
  if (idOrName !== undefined) return null;
  throw badRequest("Pass organization: this server has several organizations, or none.");
}

const nameOf = ({ repository }: TrustRow, { ref }: CiJob): string =>
  `CI of ${repository}${ref === null ? "" : ` at ${ref}`}`.replaceAll(/\p{Cc}/gu, " ").slice(0, 200);

/** Claims that a trust may pin, by the names that the providers give them. */
const pinnableClaims = [
  ...["repository", "repository_id", "project_path", "project_id"],
  ...["ref", "ref_type", "event_name", "pipeline_source", "environment"],
];

/** What a refused token claims about itself, and nothing else. */
function describe(claims: Claims): string {
  const tokenClaims = pinnableClaims.flatMap((name) =>
    claims[name] === undefined ? [] : [`${name} ${JSON.stringify(claims[name]).slice(0, 200)}`],
  );
  return `No trust covers the ID token, its issuer didn't sign it, or evald can't read the keys of its issuer. It is of the issuer ${claims.iss.slice(0, 200)}, with ${tokenClaims.join(", ") || "no claim about a repository"}. Compare them with the trust in the settings of the organization; the log of the server has the reason.`;
}
