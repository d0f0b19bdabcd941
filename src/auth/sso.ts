import { and, eq, gt } from "drizzle-orm";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { accounts, invitations, members, orgs, people, signIns } from "../db/tables.ts";
import { notFound, unavailable } from "../errors.ts";
import type { Engine } from "./engine.ts";
import { type From, toHeaders } from "./engine-calls.ts";

/** Sign-in with the operator's identity provider, by OpenID Connect with PKCE. Only verified email addresses count. */
export function createSso(ctx: Context, secret: () => string) {
  const { db, config, now, newId, baseUrl } = ctx;
  const { oidc } = config.people;
  let loading: Promise<Engine> | undefined;

  const joins = (email: string) => oidc?.join != null && email.toLowerCase().endsWith(`@${oidc.join.domain}`);

  /** People who are invited, or whose domain may join. */
  function mayJoin(email: string): boolean {
    const waiting = and(
      eq(invitations.email, email.toLowerCase()),
      eq(invitations.status, "pending"),
      gt(invitations.expiresAt, new Date(now())),
    );
    return joins(email) || db.select().from(invitations).where(waiting).get() !== undefined;
  }

  /**
   * Marks the email address of a person as verified. If it wasn't, somebody else may have created the account or set its password, so
   * the password and all sessions are removed.
   */
  const proveAddress = (personId: string): void =>
    transaction(db, (tx) => {
      const unproven = and(eq(people.id, personId), eq(people.emailVerified, false));
      const [proven] = tx
        .update(people)
        .set({ emailVerified: true })
        .where(unproven)
        .returning({ id: people.id })
        .all();
      if (!proven) return;
      tx.delete(accounts)
        .where(and(eq(accounts.personId, personId), eq(accounts.providerId, "credential")))
        .run();
      tx.delete(signIns).where(eq(signIns.personId, personId)).run();
    });

  /** Recreated after the provider's metadata couldn't be loaded. */
  async function engine(): Promise<Engine> {
    if (!oidc) throw notFound("No identity provider is configured.");
    loading ??= import("./engine.ts").then(({ createEngine }) =>
      createEngine(ctx, secret(), { oidc, mayJoin, proveAddress }),
    );
    const made = await loading;
    if ((await made.$context).socialProviders.length > 0) return made;
    loading = undefined;
    throw unavailable("The identity provider could not be reached. Try again later, or sign in with your password.");
  }

  /** Makes a person of the domain a member of its organization. */
  function joinByDomain(email: string): void {
    if (!oidc?.join || !joins(email)) return;
    const named = oidc.join.org;
    const org = db
      .select()
      .from(orgs)
      .where("id" in named ? eq(orgs.id, named.id) : eq(orgs.name, named.name))
      .get();
    if (!org) ctx.log.warn(named, "EVALD_OIDC_JOIN names an organization that doesn't exist");
    const person = db.select().from(people).where(eq(people.email, email)).get();
    if (!org || !person) return;
    db.insert(members)
      .values({ id: newId(now()), orgId: org.id, personId: person.id, role: "member", createdAt: new Date(now()) })
      .onConflictDoNothing()
      .run();
  }

  return {
    /** The label of the provider's button; null if there is no provider. */
    ssoName: oidc?.name ?? null,

    /** The provider's URL to redirect to, and the cookies to set. `next` is the path to return to, below the base. */
    async beginSso(next: string, from: From): Promise<{ location: string; cookies: string[] }> {
      const { api } = await engine();
      const body = {
        provider: "oidc",
        callbackURL: baseUrl() + next,
        errorCallbackURL: `${baseUrl()}/sign-in`,
        disableRedirect: true,
      };
      const { headers, response } = await api.signInSocial({ body, headers: toHeaders(from), returnHeaders: true });
      return { location: response.url ?? "", cookies: headers.getSetCookie() };
    },

    /** Completes the sign-in when the provider redirects back. */
    async endSso(query: Record<string, string>, from: From): Promise<{ location: string; cookies: string[] }> {
      const { api, $context } = await engine();
      const answer = await api.callbackOAuth({
        params: { id: "oidc" },
        query,
        headers: toHeaders(from),
        method: "GET",
        asResponse: true,
      });
      const cookies = answer.headers.getSetCookie();
      const token = /session_token=([^.;]+)\./.exec(cookies.join("\n"))?.[1];
      const found = token ? await (await $context).internalAdapter.findSession(decodeURIComponent(token)) : null;
      if (found) joinByDomain(found.user.email);
      return { location: answer.headers.get("location") ?? `${baseUrl()}/sign-in?error=none`, cookies };
    },
  };
}
