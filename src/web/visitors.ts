import type { Client } from "../auth/better-auth-calls.ts";
import { isOperator } from "../auth/operators.ts";
import { getOrg, hasOneOrg } from "../auth/orgs.ts";
import { findSignedIn, listMemberships } from "../auth/people.ts";
import type { Membership, SignedIn } from "../auth/person.ts";
import { listUnmetRequirements, type Requirement } from "../auth/sign-in-policy.ts";
import type { Context, OrgId } from "../context.ts";
import type { SignInPolicy } from "../db/tables/orgs.ts";
import { AppError } from "../errors.ts";
import { addressOf } from "../http/address.ts";
import type { Message } from "../http/event-stream.ts";
import { findOrgOfKey, hasSessionCookie } from "./credential.ts";
import type { Viewer } from "./viewer.ts";

/** A member who doesn't meet the sign-in policy of an organization. `others`: the member's other organizations. */
export type Barred = {
  orgName: string;
  policy: SignInPolicy;
  unmet: Requirement[];
  others: { id: OrgId; name: string }[];
};

/** The sender of a request: the signed-in person, if any, and the viewer of an organization. `cookies`: to set in the response. */
export type Visitor = {
  signedIn: SignedIn | null;
  viewer: Viewer | null;
  /** Why a member has no viewer; null: they have a viewer, or belong to no organization. */
  barred: Barred | null;
  cookies: string[];
};

/** Thrown if a member doesn't meet the sign-in policy of an organization. Nothing of the organization is shown to them. */
export class BarredError extends Error {
  constructor(readonly barred: Barred) {
    super("The session doesn't fulfill the sign-in policy.");
  }
}

/** Cookie, user agent and address of a request. */
export const clientOf = (request: Request): Client => ({
  cookie: request.headers.get("cookie") ?? "",
  userAgent: (request.headers.get("user-agent") ?? "").slice(0, 300),
  address: addressOf(request),
});

/** Finds out who requests a page, and which organization to show to them. */
export async function findVisitor(ctx: Context, request: Request): Promise<Visitor> {
  const nobody = { signedIn: null, viewer: null, barred: null, cookies: [] };
  const authorization = request.headers.get("authorization");
  if (authorization) {
    const org = findOrgOfKey(ctx, authorization);
    if (org === null) return nobody;
    const { name, timeZone } = getOrg(ctx, org);
    const orgFields = { org, orgName: name, timeZone, orgs: [{ id: org, name }] };
    return {
      ...nobody,
      viewer: { ...orgFields, role: "viewer", person: null, isOperator: false, hasWorkers: hasWorkers(ctx) },
    };
  }
  if (!hasSessionCookie(request)) return nobody;
  const { signedIn, cookies } = await findSignedIn(ctx, clientOf(request));
  return { signedIn, cookies, ...(signedIn ? findViewer(ctx, signedIn) : { viewer: null, barred: null }) };
}

/**
 * The person as the viewer of the organization that they selected. If they selected none, it is the first organization whose sign-in policy they
 * meet.
 */
function findViewer(ctx: Context, signedIn: SignedIn) {
  const memberships = listMemberships(ctx, signedIn.person.id);
  const chosen = memberships.find(({ org }) => org === signedIn.chosenOrg);
  const current = chosen ?? memberships.find((each) => unmetOf(each, signedIn).length === 0) ?? memberships[0];
  if (!current) return { viewer: null, barred: null };
  const viewer = toViewer(ctx, signedIn, current.org);
  const { orgName, signInPolicy: policy } = current;
  if (viewer || !policy) return { viewer, barred: null };
  const others = memberships.flatMap(({ org, orgName }) => (org === current.org ? [] : [{ id: org, name: orgName }]));
  return { viewer: null, barred: { orgName, policy, unmet: unmetOf(current, signedIn), others } };
}

const unmetOf = ({ signInPolicy }: Membership, { person, method }: SignedIn): Requirement[] =>
  listUnmetRequirements(signInPolicy, { email: person.email, method });

/** A person as the viewer of an organization; null if they aren't a member, or don't meet its sign-in policy. */
export function toViewer(ctx: Context, signedIn: SignedIn, orgId: string): Viewer | null {
  const { person } = signedIn;
  const memberships = listMemberships(ctx, person.id);
  const ownMembership = memberships.find(({ org }) => org === orgId);
  if (!ownMembership || unmetOf(ownMembership, signedIn).length > 0) return null;
  const { signInPolicy: _, ...membership } = ownMembership;
  const orgs = memberships.map(({ org, orgName }) => ({ id: org, name: orgName }));
  return { ...membership, person, orgs, isOperator: isOperator(ctx, person.id), hasWorkers: hasWorkers(ctx) };
}

/** Workers are for the operator of the service. An organization sees them only if it is the only one. */
const hasWorkers = (ctx: Context): boolean => ctx.config.workers.redisUrl !== null && hasOneOrg(ctx);

/**
 * Calls `show` for the current organization. If it throws not_found, tries the person's other organizations, because URLs don't name the
 * organization.
 */
export async function showInOrg<T>(
  ctx: Context,
  visitor: Visitor,
  show: (viewer: Viewer) => T | Promise<T>,
): Promise<[T, Viewer]> {
  const { signedIn } = visitor;
  const current = requireOrg(visitor);
  const otherOrgs = signedIn ? current.orgs.filter(({ id }) => id !== current.org) : [];
  const others = otherOrgs.flatMap(({ id }) => (signedIn && toViewer(ctx, signedIn, id)) ?? []);
  let notFound: unknown;
  for (const viewer of [current, ...others])
    try {
      return [await show(viewer), viewer];
    } catch (error) {
      if (!(error instanceof AppError && error.code === "not_found")) throw error;
      notFound ??= error;
    }
  throw notFound;
}

/** Passes messages on for as long as the listener has access. A stream may live longer than a session, a membership or a key. */
export async function* whileAllowed(ctx: Context, request: Request, org: string, messages: AsyncIterable<Message>) {
  for await (const message of messages) {
    const { signedIn, viewer } = await findVisitor(ctx, request);
    const hasAccess = signedIn ? toViewer(ctx, signedIn, org) !== null : viewer?.org === org;
    if (!hasAccess) return;
    yield message;
  }
}

/** Throws forbidden for a person without an organization, and `BarredError`. */
export function requireOrg({ viewer, signedIn, barred }: Visitor): Viewer {
  if (viewer) return viewer;
  if (barred) throw new BarredError(barred);
  throw new AppError(
    "forbidden",
    `You're not a member of any organization yet. Ask an owner to invite ${signedIn?.person.email}.`,
  );
}
