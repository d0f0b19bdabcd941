import { and, count, desc, eq, isNull, lt } from "drizzle-orm";
import { createKey, deleteExpiredKeysOfTrusts, revokeKeysOfTrust } from "../auth/keys.ts";
import { getOrg, listOrgs } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { trusts, usedTokens } from "../db/tables/keys.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import type { Scope } from "../http/operation.ts";
import type { Page, Paged } from "../http/paging.ts";
import { checkHttpUrl, toIso } from "../schema.ts";
import { type Claims, forgetIssuer, issuerOf, tokenRefused, verifyIdToken } from "./id-token.ts";
import { defaultIssuers, defaultMinutes, type ExchangedKey, type Trust, type TrustInput } from "./schema.ts";
import { checkTrust } from "./trust-check.ts";

type Row = typeof trusts.$inferSelect;
/** Where a job runs, by its token. */
type Job = { repository: string | null; repositoryId: string | null; ref: string | null; environment: string | null };

const maxTrusts = 100;
/** Keys of jobs are listed this long after they expired. */
const keptMs = 24 * 3600_000;
const minuteMs = 60_000;

const toTrust = ({ orgId: _, createdBy: __, createdAt, scopes, ...row }: Row): Trust => ({
  ...row,
  scopes: scopes as Scope[],
  createdAt: toIso(createdAt),
});

const textOf = (claim: unknown): string | null => (typeof claim === "string" ? claim : null);
/** GitLab sends IDs as strings or numbers, depending on its version. */
const idOf = (claim: unknown): string | null => (Number.isSafeInteger(claim) ? String(claim) : textOf(claim) || null);

const jobOf: Record<Row["provider"], (claims: Claims) => Job> = {
  github: ({ repository, repository_id, ref, environment }) => ({
    repository: textOf(repository),
    repositoryId: idOf(repository_id),
    ref: textOf(ref),
    environment: textOf(environment),
  }),
  gitlab: ({ project_path, project_id, ref, environment }) => ({
    repository: textOf(project_path),
    repositoryId: idOf(project_id),
    ref: textOf(ref),
    environment: textOf(environment),
  }),
};

/** Whether a trust covers a job. Repositories and environments are the same in any case; refs are not. */
function covers(trust: Row, job: Job): boolean {
  const isSameName = (pinned: string, actual: string | null) => pinned.toLowerCase() === actual?.toLowerCase();
  const { repository, ref, environment } = trust;
  const isRef =
    ref === null || (ref.endsWith("*") ? (job.ref?.startsWith(ref.slice(0, -1)) ?? false) : ref === job.ref);
  return (
    isSameName(repository, job.repository) &&
    isRef &&
    (environment === null || isSameName(environment, job.environment))
  );
}

/** Whether a job is of the very repository: another one can take its name after it was renamed or deleted. */
const isSameRepository = ({ repositoryId }: Row, job: Job): boolean =>
  repositoryId === null || repositoryId === job.repositoryId;

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
  const row: Row = {
    id: ctx.newId(createdAt),
    orgId: org,
    provider: input.provider,
    issuer,
    repository: input.repository,
    repositoryId: input.repositoryId ?? null,
    ref: input.ref ?? null,
    environment: input.environment ?? null,
    scopes: input.scopes ?? ["read", "run"],
    minutes: input.minutes ?? defaultMinutes,
    createdAt,
    createdBy,
  };
  ctx.db.insert(trusts).values(row).run();
  return toTrust(row);
}

/** Deletes a trust and revokes its API keys. Throws not_found. */
export function deleteTrust(ctx: Context, org: OrgId, id: string): Trust {
  const whereTrust = and(eq(trusts.orgId, org), eq(trusts.id, id.toLowerCase()));
  const row = transaction(ctx.db, (tx) => {
    const deleted = tx.delete(trusts).where(whereTrust).returning().get();
    if (!deleted) throw notFound(`No trust has the ID ${id}.`);
    revokeKeysOfTrust(ctx, org, deleted.id);
    return deleted;
  });
  if (!ctx.db.select().from(trusts).where(eq(trusts.issuer, row.issuer)).get()) forgetIssuer(ctx, row.issuer);
  return toTrust(row);
}

/** An API key for the job with this ID token. Each token works once. Throws unauthorized, bad_request and unavailable. */
export async function exchangeToken(
  ctx: Context,
  { token, organization }: { token: string; organization?: string },
): Promise<ExchangedKey> {
  const issuer = issuerOf(token);
  const org = findExchangeOrg(ctx, organization);
  const listTrustsOfIssuer = () =>
    rowsOf(ctx, org)
      .all()
      .filter((row) => row.issuer === issuer);
  // Before any request: only an owner chooses which issuers evald asks for keys.
  if (listTrustsOfIssuer().length === 0)
    throw tokenRefused(`No trust has the issuer ${issuer}. An owner can add one in the settings.`);
  const claims = await verifyIdToken(ctx, token, { issuer, audience: ctx.baseUrl() });
  // Read again: a trust may have been removed while the issuer responded.
  const trustsOfIssuer = listTrustsOfIssuer();
  const coveringTrusts = trustsOfIssuer.filter((row) => covers(row, jobOf[row.provider](claims)));
  const trust = coveringTrusts.find((row) => isSameRepository(row, jobOf[row.provider](claims)));
  if (!trust)
    throw tokenRefused(describeMismatch(coveringTrusts[0], jobOf[trustsOfIssuer[0]?.provider ?? "github"](claims)));
  return transaction(ctx.db, (tx) => {
    const at = ctx.now();
    tx.delete(usedTokens)
      .where(lt(usedTokens.expiresAt, at - minuteMs))
      .run();
    const usedToken = { issuer, jti: claims.jti, expiresAt: claims.exp * 1000 };
    if (tx.insert(usedTokens).values(usedToken).onConflictDoNothing().returning().all().length === 0)
      throw tokenRefused("The ID token was used before. Request a new one for each exchange.");
    const { repositoryId } = jobOf[trust.provider](claims);
    if (trust.repositoryId === null && repositoryId !== null)
      tx.update(trusts)
        .set({ repositoryId })
        .where(and(eq(trusts.id, trust.id), isNull(trusts.repositoryId)))
        .run();
    deleteExpiredKeysOfTrusts(ctx, org, at - keptMs);
    const { key, apiKey } = createKey(ctx, org, nameOf(trust, jobOf[trust.provider](claims)), {
      lifeMs: trust.minutes * minuteMs,
      scopes: trust.scopes,
      createdBy: trust.createdBy ?? undefined,
      trustId: trust.id,
    });
    const { id, name } = getOrg(ctx, org);
    return {
      key,
      expiresAt: apiKey.expiresAt as string,
      scopes: trust.scopes as Scope[],
      organization: { id, name },
    };
  });
}

const rowsOf = (ctx: Context, org: OrgId) =>
  ctx.db.select().from(trusts).where(eq(trusts.orgId, org)).orderBy(desc(trusts.id));

/** The organization of an exchange. It is named unless there is one: another one may trust the same repository. */
function findExchangeOrg(ctx: Context, idOrName: string | undefined): OrgId {
  const all = listOrgs(ctx);
  const matches =
    idOrName === undefined ? all : all.filter(({ id, name }) => id === idOrName.toLowerCase() || name === idOrName);
  const [only] = matches;
  if (only && matches.length === 1) return only.id;
  throw idOrName === undefined
    ? badRequest("Pass organization: this server has several organizations, or none.")
    : tokenRefused(`No trust of an organization ${JSON.stringify(idOrName)} matches the ID token.`);
}

const nameOf = ({ repository }: Row, { ref }: Job): string =>
  `CI of ${repository}${ref === null ? "" : ` at ${ref}`}`.replaceAll(/\p{Cc}/gu, " ").slice(0, 200);

/** `trust`: a trust that covers the name of the repository, but not its ID. */
const describeMismatch = (trust: Row | undefined, job: Job): string =>
  trust === undefined
    ? `No trust matches ${describe(job)}.`
    : `The trusted repository ${trust.repository} has the ID ${trust.repositoryId}, but the ID token is of ${job.repository} with ${job.repositoryId === null ? "no ID" : `the ID ${job.repositoryId}`}. If the repository was created anew, an owner can remove the trust and add it again.`;

const describe = ({ repository, ref, environment }: Job): string =>
  `the repository ${repository}, the ref ${ref} and ${environment === null ? "no environment" : `the environment ${environment}`} of the ID token`;
