import { addressOf } from "../auth/address.ts";
import type { From } from "../auth/engine-calls.ts";
import { getOrg } from "../auth/orgs.ts";
import { findSignedIn, listMemberships } from "../auth/people.ts";
import type { SignedIn } from "../auth/person.ts";
import { AppError } from "../errors.ts";
import type { Message } from "../http/event-stream.ts";
import type { Service } from "../service.ts";
import { bearsSignIn, findOrg } from "./credential.ts";
import type { Viewer } from "./viewer.ts";

export type Answer = Response | Promise<Response>;

/** Who sent a request: the signed-in person, if any, and the viewer of an organization. `cookies`: to set on the response. */
export type Visitor = { signedIn: SignedIn | null; viewer: Viewer | null; cookies: string[] };

/** Cookie, user agent and address of a request. */
export const fromOf = (request: Request): From => ({
  cookie: request.headers.get("cookie") ?? "",
  userAgent: (request.headers.get("user-agent") ?? "").slice(0, 300),
  address: addressOf(request),
});

/** Finds who requests a page, and the organization to show them. */
export function createVisitors({ ctx, workers }: Pick<Service, "ctx" | "workers">) {
  async function findVisitor(request: Request): Promise<Visitor> {
    const nobody = { signedIn: null, viewer: null, cookies: [] };
    const org = findOrg(ctx, request);
    if (org === null) return nobody;
    if (org !== undefined) {
      const { name, timeZone } = getOrg(ctx, org);
      const own = { org, orgName: name, timeZone, orgs: [{ id: org, name }] };
      const viewer: Viewer = { ...own, role: "viewer", person: null, hasWorkers: workers.isManaged() };
      return { ...nobody, viewer };
    }
    if (!bearsSignIn(request)) return nobody;
    const { signedIn, cookies } = await findSignedIn(ctx, fromOf(request));
    return { signedIn, cookies, viewer: signedIn && (toViewer(signedIn, signedIn.chosen) ?? toViewer(signedIn)) };
  }

  /** A person as the viewer of an organization, the first one by default; null if they are not a member. */
  function toViewer({ person }: SignedIn, wanted?: string | null): Viewer | null {
    const all = listMemberships(ctx, person.id);
    const shown = wanted === undefined ? all[0] : all.find(({ org }) => org === wanted);
    if (!shown) return null;
    const orgs = all.map(({ org, orgName }) => ({ id: org, name: orgName }));
    return { ...shown, person, orgs, hasWorkers: workers.isManaged() };
  }

  /** Renders a page for the current organization. If it is not found there, tries the person’s other organizations, because URLs name none. */
  async function inOrgOf(visitor: Visitor, make: (viewer: Viewer) => Answer): Promise<[Response, Viewer]> {
    const { signedIn } = visitor;
    const viewer = needOrg(visitor);
    const others = viewer.orgs.flatMap(({ id }) => (signedIn && id !== viewer.org && toViewer(signedIn, id)) || []);
    let missed: unknown;
    for (const each of [viewer, ...others])
      try {
        return [await make(each), each];
      } catch (error) {
        if (!(error instanceof AppError && error.code === "not_found")) throw error;
        missed ??= error;
      }
    throw missed;
  }

  /** Passes messages on while the listener has access: a stream may outlive a session, a membership or a key. */
  async function* whileAllowed(request: Request, { org }: Viewer, messages: AsyncIterable<Message>) {
    for await (const message of messages) {
      const { viewer } = await findVisitor(request);
      if (!viewer?.orgs.some(({ id }) => id === org)) return;
      yield message;
    }
  }

  return { findVisitor, toViewer, inOrgOf, whileAllowed };
}

/** Throws forbidden for a person without an organization. */
export function needOrg({ viewer, signedIn }: Visitor): Viewer {
  if (viewer) return viewer;
  throw new AppError(
    "forbidden",
    `You're not a member of any organization yet. Ask an owner to invite ${signedIn?.person.email}.`,
  );
}
