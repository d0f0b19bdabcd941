import type { Client } from "../auth/better-auth-calls.ts";
import { isOperator } from "../auth/operators.ts";
import { getOrg, hasOneOrg } from "../auth/orgs.ts";
import { findSignedIn, listMemberships } from "../auth/people.ts";
import type { SignedIn } from "../auth/person.ts";
import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { addressOf } from "../http/address.ts";
import type { Message } from "../http/event-stream.ts";
import { findOrgOfKey, hasSessionCookie } from "./credential.ts";
import type { Viewer } from "./viewer.ts";

/** Who sent a request: the signed-in person, if any, and the viewer of an organization. `cookies`: to set on the response. */
export type Visitor = { signedIn: SignedIn | null; viewer: Viewer | null; cookies: string[] };

/** Cookie, user agent and address of a request. */
export const clientOf = (request: Request): Client => ({
  cookie: request.headers.get("cookie") ?? "",
  userAgent: (request.headers.get("user-agent") ?? "").slice(0, 300),
  address: addressOf(request),
});

/** Finds who requests a page, and the organization to show them. */
export async function findVisitor(ctx: Context, request: Request): Promise<Visitor> {
  const nobody = { signedIn: null, viewer: null, cookies: [] };
  const org = findOrgOfKey(ctx, request);
  if (org === null) return nobody;
  if (org !== undefined) {
    const { name, timeZone } = getOrg(ctx, org);
    const orgFields = { org, orgName: name, timeZone, orgs: [{ id: org, name }] };
    return {
      ...nobody,
      viewer: { ...orgFields, role: "viewer", person: null, isOperator: false, hasWorkers: hasWorkers(ctx) },
    };
  }
  if (!hasSessionCookie(request)) return nobody;
  const { signedIn, cookies } = await findSignedIn(ctx, clientOf(request));
  const viewer = signedIn && (toViewer(ctx, signedIn, signedIn.chosenOrg) ?? toViewer(ctx, signedIn));
  return { signedIn, cookies, viewer };
}

/** A person as the viewer of an organization, the first one by default; null if they are not a member. */
export function toViewer(ctx: Context, { person }: SignedIn, orgId?: string | null): Viewer | null {
  const memberships = listMemberships(ctx, person.id);
  const membership = orgId === undefined ? memberships[0] : memberships.find(({ org }) => org === orgId);
  if (!membership) return null;
  const orgs = memberships.map(({ org, orgName }) => ({ id: org, name: orgName }));
  return { ...membership, person, orgs, isOperator: isOperator(ctx, person.id), hasWorkers: hasWorkers(ctx) };
}

/** Workers belong to the operator of the service: an organization sees them only if it is the only one. */
const hasWorkers = (ctx: Context): boolean => ctx.config.workers.redisUrl !== null && hasOneOrg(ctx);

/** Calls `show` for the current organization. If it throws not_found, tries the person's other organizations, because URLs name none. */
export async function showInOrg<T>(
  ctx: Context,
  visitor: Visitor,
  show: (viewer: Viewer) => T | Promise<T>,
): Promise<[T, Viewer]> {
  const { signedIn } = visitor;
  const current = requireOrg(visitor);
  const others = current.orgs.flatMap(
    ({ id }) => (signedIn && id !== current.org && toViewer(ctx, signedIn, id)) || [],
  );
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

/** Passes messages on while the listener has access: a stream may outlive a session, a membership or a key. */
export async function* whileAllowed(ctx: Context, request: Request, org: string, messages: AsyncIterable<Message>) {
  for await (const message of messages) {
    const { viewer } = await findVisitor(ctx, request);
    if (!viewer?.orgs.some(({ id }) => id === org)) return;
    yield message;
  }
}

/** Throws forbidden for a person without an organization. */
export function requireOrg({ viewer, signedIn }: Visitor): Viewer {
  if (viewer) return viewer;
  throw new AppError(
    "forbidden",
    `You're not a member of any organization yet. Ask an owner to invite ${signedIn?.person.email}.`,
  );
}
