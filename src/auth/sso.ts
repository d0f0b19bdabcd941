import { and, eq, gt } from "drizzle-orm";
import { invitations, members, orgs, people } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { notFound, unavailable } from "../errors.ts";
import type { Engine } from "./engine.ts";
import { type From, toHeaders } from "./engine-calls.ts";

/** Signing in with the identity provider of the operator, by OpenID Connect with PKCE. Only its verified addresses count. */
export function createSso(deps: Deps, secret: () => string) {
  const { db, config, now, newId, baseUrl } = deps;
  const { oidc } = config.people;
  let loading: Promise<Engine> | undefined;

  const joins = (email: string) => oidc?.join != null && email.toLowerCase().endsWith(`@${oidc.join.domain}`);

  /** Whoever is invited, or is of the domain that may join. */
  function mayCome(email: string): boolean {
    const waiting = and(
      eq(invitations.email, email.toLowerCase()),
      eq(invitations.status, "pending"),
      gt(invitations.expiresAt, new Date(now())),
    );
    return joins(email) || db.select().from(invitations).where(waiting).get() !== undefined;
  }

  /** Made anew after a provider could not be asked what it offers. */
  async function engine(): Promise<Engine> {
    if (!oidc) throw notFound("No identity provider is configured.");
    loading ??= import("./engine.ts").then(({ createEngine }) => createEngine(deps, secret(), { oidc, mayCome }));
    const made = await loading;
    if ((await made.$context).socialProviders.length > 0) return made;
    loading = undefined;
    throw unavailable("The identity provider could not be reached. Try again later, or sign in with your password.");
  }

  /** Makes somebody of the domain a member of its organisation. */
  function joinByDomain(email: string): void {
    const org = db
      .select()
      .from(orgs)
      .where(eq(orgs.name, oidc?.join?.orgName ?? ""))
      .get();
    const person = db.select().from(people).where(eq(people.email, email)).get();
    if (!org || !person || !joins(email)) return;
    db.insert(members)
      .values({ id: newId(now()), orgId: org.id, personId: person.id, role: "member", createdAt: new Date(now()) })
      .onConflictDoNothing()
      .run();
  }

  return {
    /** What the button to the provider says; null where there is none. */
    ssoName: oidc?.name ?? null,

    /** The address at the provider to which the browser goes, and the cookies that it takes along. `next` is where it ends, from the base on. */
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

    /** Takes up what the provider sent the browser back with. */
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
