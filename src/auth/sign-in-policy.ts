import { eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { orgs, type SignInPolicy } from "../db/tables/orgs.ts";
import type { SignInMethod } from "../db/tables/people.ts";
import { AppError, conflict, invalidField } from "../errors.ts";
import type { SignedIn } from "./person.ts";

/** What a member must do to see an organization: sign in with the identity provider, use a second factor, or have another email address. */
export type Requirement = "sso" | "second_factor" | "email_domain";

const noPolicy: SignInPolicy = { requiresSso: false, requiresSecondFactor: false, emailDomains: [] };
const domainShape = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/;
const maxDomains = 50;

/**
 * The requirements of a policy that a person doesn't meet in a session. An identity provider asks for a second factor itself, so a session from an
 * identity provider meets that requirement. `method`: null if the person has no session.
 */
export function listUnmetRequirements(
  policy: SignInPolicy | null,
  { email, method }: { email: string; method: SignInMethod | null },
): Requirement[] {
  if (policy === null) return [];
  const unmet: Requirement[] = [];
  if (policy.requiresSso && method !== "sso") unmet.push("sso");
  if (policy.requiresSecondFactor && (method === null || method === "password")) unmet.push("second_factor");
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  if (policy.emailDomains.length > 0 && !policy.emailDomains.includes(domain)) unmet.push("email_domain");
  return unmet;
}

/** The sign-in policy of an organization. Without a policy, nothing is required. */
export const getSignInPolicy = ({ db }: Context, org: OrgId): SignInPolicy =>
  db.select({ policy: orgs.signInPolicy }).from(orgs).where(eq(orgs.id, org)).get()?.policy ?? noPolicy;

/**
 * Sets how members must sign in, from their next request on. Throws bad_request for an invalid domain. Throws conflict if the person who sets the
 * policy doesn't meet it in this session, because they would lock themselves out.
 */
export function setSignInPolicy(
  ctx: Context,
  org: OrgId,
  { person, method }: Pick<SignedIn, "person" | "method">,
  policy: SignInPolicy,
): void {
  const emailDomains = policy.emailDomains.map((domain) => domain.toLowerCase().replace(/^@/, ""));
  for (const domain of emailDomains)
    if (!domainShape.test(domain)) throw invalidField("emailDomains", `${JSON.stringify(domain)} is not a domain`);
  if (emailDomains.length > maxDomains) throw invalidField("emailDomains", `must be at most ${maxDomains} domains`);
  const [unmet] = listUnmetRequirements({ ...policy, emailDomains }, { email: person.email, method });
  if (unmet) throw conflict(`You would lock yourself out. ${remedyOf(ctx, unmet, person.email)}`);
  storePolicy(ctx, org, { ...policy, emailDomains });
}

/** Removes the policy. Only for the command line, whose user has full access to the machine. */
export const resetSignInPolicy = (ctx: Context, org: OrgId): void => storePolicy(ctx, org, noPolicy);

/** Throws forbidden if the organization's policy doesn't allow members with this email address. */
export function checkEmailDomain(ctx: Context, org: OrgId, email: string): void {
  const { emailDomains } = getSignInPolicy(ctx, org);
  if (listUnmetRequirements({ ...noPolicy, emailDomains }, { email, method: null }).length > 0)
    throw new AppError(
      "forbidden",
      `The sign-in policy allows only email addresses of ${emailDomains.join(", ")}, so ${email} can't become a member.`,
    );
}

function storePolicy(ctx: Context, org: OrgId, policy: SignInPolicy): void {
  const before = getSignInPolicy(ctx, org);
  transaction(ctx.db, (tx) => {
    tx.update(orgs).set({ signInPolicy: policy }).where(eq(orgs.id, org)).run();
    recordAudit(ctx, org, "sign_in_policy.changed", { id: org }, changesOf(before, policy));
  });
}

function remedyOf(ctx: Context, requirement: Requirement, email: string): string {
  if (requirement === "email_domain") return `Your own address ${email} is of none of these domains.`;
  if (requirement === "second_factor")
    return "Set up two-factor sign-in or a passkey in your account, and sign in with it first.";
  const { oidc } = ctx.config.people;
  return oidc === null
    ? "This server has no identity provider."
    : `Sign out, and sign in with ${oidc.name} before you require it.`;
}
