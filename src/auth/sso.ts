import { and, eq, gt } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import { transaction } from "../db/open.ts";
import { orgs } from "../db/tables/orgs.ts";
import { accounts, invitations, members, people, signIns } from "../db/tables/people.ts";
import { notFound, unavailable } from "../errors.ts";
import type { BetterAuth } from "./better-auth.ts";
import { type Client, toHeaders } from "./better-auth-calls.ts";
import { secretOf } from "./links.ts";
import { recordFailedSignIn, recordSignIn } from "./people.ts";
import { listUnmetRequirements } from "./sign-in-policy.ts";
import { removeFactors } from "./two-factor.ts";

type OrgToJoin = { id: string } | { name: string };

/** better-auth with the identity provider; undefined: not loaded yet, or the metadata of the provider could not be loaded. */
const instances = perContext(() => ({ loading: undefined as Promise<BetterAuth> | undefined }));

/** The name that people use for the identity provider; null: none is configured. */
export const ssoNameOf = ({ config }: Context): string | null => config.people.oidc?.name ?? null;

/** The URL of the provider to redirect to, and the cookies to set. `next`: the path to return to, without the base path. */
export async function beginSso(ctx: Context, next: string, client: Client) {
  const { api } = await loadBetterAuthWithSso(ctx);
  const body = {
    provider: "oidc",
    callbackURL: ctx.baseUrl() + next,
    errorCallbackURL: `${ctx.baseUrl()}/sign-in`,
    disableRedirect: true,
  };
  const { headers, response } = await api.signInSocial({ body, headers: toHeaders(client), returnHeaders: true });
  return { location: response.url ?? "", cookies: headers.getSetCookie() };
}

/** Completes the sign-in when the provider has redirected back. */
export async function endSso(ctx: Context, query: Record<string, string>, client: Client) {
  const { api, $context } = await loadBetterAuthWithSso(ctx);
  const response = await api.callbackOAuth({
    params: { id: "oidc" },
    query,
    headers: toHeaders(client),
    method: "GET",
    asResponse: true,
  });
  const cookies = response.headers.getSetCookie();
  // better-auth returns no session here. The cookie contains the session's token, followed by a period and a signature.
  const token = /session_token=([^.;]+)\./.exec(cookies.join("\n"))?.[1];
  const signIn = token ? await (await $context).internalAdapter.findSession(decodeURIComponent(token)) : null;
  if (signIn) {
    const { id, name, email } = signIn.user;
    joinByDomain(ctx, { id, name, email });
    recordSignIn(ctx, { id, name });
  } else recordFailedSignIn(ctx, null);
  return { location: response.headers.get("location") ?? `${ctx.baseUrl()}/sign-in?error=none`, cookies };
}

/** The organization that people with this domain in their email address may join; null: none. */
function orgOfDomain({ config }: Context, email: string): OrgToJoin | null {
  const join = config.people.oidc?.join;
  return join && email.toLowerCase().endsWith(`@${join.domain}`) ? join.org : null;
}

/** Whether a person is invited, or may join because of their domain. */
function mayJoin(ctx: Context, email: string): boolean {
  const where = and(
    eq(invitations.email, email.toLowerCase()),
    eq(invitations.status, "pending"),
    gt(invitations.expiresAt, new Date(ctx.now())),
  );
  return orgOfDomain(ctx, email) !== null || ctx.db.select().from(invitations).where(where).get() !== undefined;
}

/**
 * Marks the email address of a person as verified. If it wasn't verified before, somebody else may have created the account or set its password. So
 * the password, the second factors and all sessions are removed.
 */
const proveAddress = (ctx: Context, personId: string): void =>
  transaction(ctx.db, (tx) => {
    const where = and(eq(people.id, personId), eq(people.emailVerified, false));
    const [person] = tx.update(people).set({ emailVerified: true }).where(where).returning({ id: people.id }).all();
    if (!person) return;
    tx.delete(accounts)
      .where(and(eq(accounts.personId, personId), eq(accounts.providerId, "credential")))
      .run();
    removeFactors(tx, personId);
    tx.delete(signIns).where(eq(signIns.personId, personId)).run();
  });

/** Throws not_found without an identity provider, and unavailable if its metadata can't be loaded. In that case, the next call tries again. */
async function loadBetterAuthWithSso(ctx: Context): Promise<BetterAuth> {
  const { oidc } = ctx.config.people;
  if (!oidc) throw notFound("No identity provider is configured.");
  const state = instances(ctx);
  state.loading ??= import("./better-auth.ts").then(({ createBetterAuth }) =>
    createBetterAuth(ctx, secretOf(ctx), {
      sso: {
        oidc,
        mayJoin: (email) => mayJoin(ctx, email),
        proveAddress: (personId) => proveAddress(ctx, personId),
      },
    }),
  );
  const betterAuth = await state.loading;
  // better-auth leaves out a provider if it could not load the provider's metadata.
  if ((await betterAuth.$context).socialProviders.length > 0) return betterAuth;
  state.loading = undefined;
  throw unavailable("The identity provider could not be reached. Try again later, or sign in with your password.");
}

/**
 * The organization that everyone of a domain joins. If it doesn't exist, or its policy doesn't allow the address, logs a warning and returns null.
 */
function findOrgToJoin(ctx: Context, idOrName: OrgToJoin, email: string): OrgId | null {
  const where = "id" in idOrName ? eq(orgs.id, idOrName.id) : eq(orgs.name, idOrName.name);
  const org = ctx.db.select().from(orgs).where(where).get();
  if (!org) {
    ctx.log.warn(idOrName, "EVALD_OIDC_JOIN names an organization that doesn't exist");
    return null;
  }
  if (listUnmetRequirements(org.signInPolicy, { email, method: "sso" }).length > 0) {
    ctx.log.warn(idOrName, "EVALD_OIDC_JOIN names an organization whose sign-in policy doesn't allow the domain");
    return null;
  }
  return org.id as OrgId;
}

/** Makes a person of the domain a member of the domain's organization. */
function joinByDomain(ctx: Context, person: { id: string; name: string; email: string }): void {
  const orgToJoin = orgOfDomain(ctx, person.email);
  const orgId = orgToJoin && findOrgToJoin(ctx, orgToJoin, person.email);
  if (orgId === null) return;
  const createdAt = ctx.now();
  const row = {
    id: ctx.newId(createdAt),
    orgId,
    personId: person.id,
    role: "member",
    createdAt: new Date(createdAt),
  } as const;
  transaction(ctx.db, (tx) => {
    const [added] = tx.insert(members).values(row).onConflictDoNothing().returning({ role: members.role }).all();
    if (added) recordAudit(ctx, orgId, "member.added", person, changesOf({}, added));
  });
}
