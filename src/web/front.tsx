import { renderToString } from "preact-render-to-string";
import { addressOf } from "../auth/address.ts";
import type { From } from "../auth/enginecalls.ts";
import type { SignedIn } from "../auth/people.ts";
import { AppError, badRequest } from "../errors.ts";
import type { Service } from "../service.ts";
import { compressed, privateAnswer, statusOf, wantsHtml } from "./answer.ts";
import { bearsSignIn, findOrg, toNext } from "./credential.ts";
import { forms, toPage } from "./layout.tsx";
import { type Message, streamAnswer } from "./live.ts";
import { ErrorPage, KeyNeededPage, SignedOutNote, UnsentPage } from "./pages/error.tsx";
import { type Site, toSite } from "./site.ts";
import { type Act, may, roleFor, type Viewer } from "./viewer.ts";

type Answer = Response | Promise<Response>;

/** Who sent a request: the person, if one is signed in, and who looks at an organisation. `cookies` go back with the answer. */
type Visitor = { signedIn: SignedIn | null; viewer: Viewer | null; cookies: string[] };

/** Who does something in an organisation: always a person. */
export type Actor = Viewer & { person: NonNullable<Viewer["person"]> };

export type Front = ReturnType<typeof createFront>;

/** What every page that is not for everyone goes through: who looks, whether they may, and errors as pages. */
export function createFront(service: Service) {
  const { deps, keys, orgs, people } = service;
  const site = () => toSite(deps);

  async function findVisitor(request: Request): Promise<Visitor> {
    const nobody = { signedIn: null, viewer: null, cookies: [] };
    const org = findOrg(request, keys);
    if (org === null) return nobody;
    if (org !== undefined) {
      const { name } = orgs.getOrg(org);
      return { ...nobody, viewer: { org, orgName: name, role: "member", person: null, orgs: [{ id: org, name }] } };
    }
    if (!bearsSignIn(request)) return nobody;
    const { signedIn, cookies } = await people.findSignedIn(fromOf(request));
    return { signedIn, cookies, viewer: signedIn && (toViewer(signedIn, signedIn.chosen) ?? toViewer(signedIn)) };
  }

  /** A person in one of their organisations, in the first unless told which; null if they are not in it. */
  function toViewer({ person }: SignedIn, wanted?: string | null): Viewer | null {
    const all = people.membershipsOf(person.id);
    const shown = wanted === undefined ? all[0] : all.find(({ org }) => org === wanted);
    return shown ? { ...shown, person, orgs: all.map(({ org, orgName }) => ({ id: org, name: orgName })) } : null;
  }

  /** A page of the organisation that is shown; what is not in it is looked for in the others of the person, for an address that somebody sent names none. */
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

  /** Messages for as long as whoever listens may: a stream is open longer than a sign-in, a membership or a key may last. */
  async function* whileAllowed(request: Request, { org }: Viewer, messages: AsyncIterable<Message>) {
    for await (const message of messages) {
      const { viewer } = await findVisitor(request);
      if (!viewer?.orgs.some(({ id }) => id === org)) return;
      yield message;
    }
  }

  /** Throws forbidden unless a form of this service itself was sent. A form of another site bears the cookie as well, but not this origin. */
  async function readForm(request: Request): Promise<URLSearchParams> {
    const own = new URL(deps.baseUrl());
    const sent = URL.parse(request.headers.get("origin") ?? "");
    // The same service under another of its names, as localhost for 127.0.0.1: a browser tells both, and a page can forge neither.
    const host = request.headers.get("host") ?? own.host;
    if (sent?.protocol !== own.protocol || ![own.host, host].includes(sent.host))
      throw new AppError(
        "forbidden",
        `this was not sent from a page of ${own.origin}; open it there and try again (EVALD_BASE_URL names where people find this service)`,
      );
    const type = request.headers.get("content-type") ?? "";
    if (!type.startsWith("application/x-www-form-urlencoded")) throw badRequest("a form is needed");
    return new URLSearchParams(await request.text());
  }

  /** Where the browser goes after a form, by GET. `path` is from the base on. */
  const seeOther = (path: string): Response =>
    new Response(null, { status: 303, headers: { location: site().base + path, "cache-control": "no-store" } });

  /** A stranger at a door: people sign in first, programs are told what is missing. */
  function askWho(request: Request, here: Site): Response {
    const { pathname, search } = new URL(request.url);
    if (isPart(request)) return privateAnswer("html", renderToString(<SignedOutNote site={here} />), 401);
    if (wantsHtml(request) && !request.headers.get("authorization")) {
      const next = request.method === "GET" ? toNext(pathname.slice(here.base.length) + search) : "/";
      return seeOther(next === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(next)}`);
    }
    const body = toPage(<KeyNeededPage site={here} path={pathname} />);
    return privateAnswer("html", body, 401, { "www-authenticate": "Bearer" });
  }

  /** A stranger with a form: whoever was signed out while they wrote keeps what they wrote. */
  async function askAgain(request: Request, here: Site): Promise<Response> {
    if (isPart(request) || request.headers.get("authorization") || !wantsHtml(request)) return askWho(request, here);
    const form = await readForm(request);
    const { pathname } = new URL(request.url);
    return privateAnswer("html", toPage(<UnsentPage site={here} path={pathname} form={form} />), 401);
  }

  async function answer(
    request: Request,
    make: (visitor: Visitor, site: Site) => Answer,
    { isPublic = false } = {},
  ): Promise<Response> {
    const here = site();
    const visitor = await findVisitor(request);
    const { viewer, signedIn, cookies } = visitor;
    let response: Response;
    try {
      response = viewer || signedIn || isPublic ? await make(visitor, here) : askWho(request, here);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      response = errorAnswer(here, request, error, viewer ?? undefined);
    }
    response = compressed(request, response);
    // What the page itself sets goes before what was only made longer.
    if (!response.headers.has("set-cookie"))
      for (const cookie of cookies) response.headers.append("set-cookie", cookie);
    return response;
  }

  function needOrg({ viewer, signedIn }: Visitor): Viewer {
    if (viewer) return viewer;
    throw new AppError(
      "forbidden",
      `${signedIn?.person.email} is in no organisation; an owner of one can invite you to it`,
    );
  }

  return {
    site,
    seeOther,
    /** Shows what belongs to the organisation of whoever looks; a stranger is asked who they are. */
    show: (request: Request, make: (viewer: Viewer, site: Site) => Answer): Promise<Response> =>
      answer(request, async (visitor, here) => {
        const [response, { org }] = await inOrgOf(visitor, (viewer) => make(viewer, here));
        if (visitor.signedIn && org !== visitor.viewer?.org && !isPart(request))
          people.chooseOrg(visitor.signedIn, org);
        return response;
      }),

    /** Streams what belongs to the organisation of whoever listens, or to another of theirs that `org` in the address names. */
    stream: (
      request: Request,
      make: (viewer: Viewer, site: Site) => (gone: AbortSignal) => AsyncIterable<Message>,
    ): Promise<Response> =>
      answer(request, async (visitor, here) => {
        const named = new URL(request.url).searchParams.get("org");
        const viewer = visitor.signedIn && named !== null ? toViewer(visitor.signedIn, named) : visitor.viewer;
        const [response] = await inOrgOf({ ...visitor, viewer }, (viewer) => {
          const messages = make(viewer, here);
          return streamAnswer((gone) => whileAllowed(request, viewer, messages(gone)));
        });
        return response;
      }),

    /** Does what a form asks for, for a person whose role allows it, if the form stands on a page of this service. API keys only read here. */
    act: (
      request: Request,
      act: Act,
      make: (viewer: Actor, form: URLSearchParams, site: Site) => Answer,
    ): Promise<Response> =>
      answer(
        request,
        async (visitor, here) => {
          const { signedIn } = visitor;
          if (!visitor.viewer && !signedIn) return await askAgain(request, here);
          const seen = needOrg(visitor);
          if (seen.person === null || !signedIn)
            throw new AppError("forbidden", "an API key only reads pages; a program does this over the API");
          const form = await readForm(request);
          // Another organisation may be shown by now, in another tab: the form does what the page said that it was sent from.
          const madeFor = form.get(forms.madeFor) ?? seen.org;
          const viewer = madeFor === seen.org ? seen : toViewer(signedIn, madeFor);
          if (!viewer)
            throw new AppError(
              "forbidden",
              "the page that this was sent from is of an organisation that you are not in any more; nothing was changed",
            );
          if (viewer !== seen) people.chooseOrg(signedIn, madeFor);
          if (!may(viewer, act))
            throw new AppError(
              "forbidden",
              `this takes the role ${roleFor(act)}; yours is ${viewer.role}. Owners change roles under Settings, Members`,
            );
          return make({ ...viewer, person: signedIn.person }, form, here);
        },
        { isPublic: true },
      ),

    /** Shows or does what belongs to a person themselves, in whatever organisation they are, if any. A form must stand on a page of this service. */
    own: (
      request: Request,
      make: (self: { signedIn: SignedIn; viewer: Viewer | null; form: URLSearchParams; site: Site }) => Answer,
    ): Promise<Response> =>
      answer(request, async ({ signedIn, viewer }, here) => {
        if (!signedIn)
          throw new AppError("forbidden", "an API key has no account; this is for people who are signed in");
        const form = request.method === "GET" ? new URLSearchParams() : await readForm(request);
        return make({ signedIn, viewer, form, site: here });
      }),

    /** Shows a page that strangers see as well. */
    greet: (request: Request, make: (visitor: Visitor, site: Site) => Answer): Promise<Response> =>
      answer(request, make, { isPublic: true }),

    /** Takes a form of a page that strangers see as well. */
    take: (
      request: Request,
      make: (visitor: Visitor, form: URLSearchParams, site: Site) => Answer,
    ): Promise<Response> =>
      answer(request, async (visitor, here) => make(visitor, await readForm(request), here), { isPublic: true }),

    /** The same answer with cookies. */
    withCookies(response: Response, cookies: string[]): Response {
      for (const cookie of cookies) response.headers.append("set-cookie", cookie);
      return response;
    },
  };
}

/** Whether a script on a page asks for a part of it, or for a stream: no person sees a whole page in its place. */
const isPart = ({ headers }: Request): boolean =>
  headers.has("hx-request") || (headers.get("accept") ?? "").includes("text/event-stream");

/** From where a request comes. */
export const fromOf = (request: Request): From => ({
  cookie: request.headers.get("cookie") ?? "",
  userAgent: (request.headers.get("user-agent") ?? "").slice(0, 300),
  address: addressOf(request),
});

/** An error as a page, with its own status. */
export function errorAnswer(site: Site, request: Request, error: AppError, viewer?: Viewer): Response {
  const { pathname } = new URL(request.url);
  const status = statusOf(error);
  const page = <ErrorPage {...{ site, viewer, path: pathname, status, error }} />;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(page), status, wait);
}
