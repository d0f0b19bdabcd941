import { renderToString } from "preact-render-to-string";
import type { SignedIn } from "../auth/person.ts";
import { AppError } from "../errors.ts";
import type { Message } from "../http/event-stream.ts";
import type { Service } from "../service.ts";
import { compressed, privateAnswer, statusOf, wantsHtml } from "./answer.ts";
import { forms, toPage } from "./components/layout.tsx";
import { toNext } from "./credential.ts";
import { readForm } from "./form-origin.ts";
import { ErrorPage, KeyNeededPage, SignedOutNote, UnsentPage } from "./pages/error.tsx";
import type { Site } from "./site.ts";
import { toSite } from "./site.ts";
import { type Act, may, roleFor, type Viewer } from "./viewer.ts";
import { type Answer, createVisitors, needOrg, type Visitor } from "./visitors.ts";

/** A viewer who submits a form: always a person, never an API key. */
export type Actor = Viewer & { person: NonNullable<Viewer["person"]> };

/** Anyone can send a form that needs no sign-in. */
const publicFormBytes = 64 * 1024;

export type PageRequests = ReturnType<typeof createPageRequests>;

/** Authentication, permissions, CSRF checks and error pages for all page routes. */
export function createPageRequests(service: Service) {
  const { deps, people, streams } = service;
  const { findVisitor, toViewer, inOrgOf, whileAllowed } = createVisitors(service);
  const site = () => toSite(deps);
  /** Redirects the browser after a form. `path`: without the base. */
  const seeOther = (path: string): Response => redirect(site(), path);

  /** Response for an unauthenticated form: keeps the submitted values to send again after signing in. */
  async function askAgain(request: Request, here: Site): Promise<Response> {
    if (isPart(request) || request.headers.get("authorization") || !wantsHtml(request)) return askWho(request, here);
    const form = await readForm(request, deps.baseUrl(), publicFormBytes);
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
    // Cookies set by the page take precedence over a renewed session.
    if (!response.headers.has("set-cookie"))
      for (const cookie of cookies) response.headers.append("set-cookie", cookie);
    return response;
  }

  return {
    site,
    seeOther,
    /** Shows a page of the viewer’s organization. Requires signing in or an API key. */
    show: (request: Request, make: (viewer: Viewer, site: Site) => Answer): Promise<Response> =>
      answer(request, async (visitor, here) => {
        const [response, { org }] = await inOrgOf(visitor, (viewer) => make(viewer, here));
        if (visitor.signedIn && org !== visitor.viewer?.org && !isPart(request))
          people.chooseOrg(visitor.signedIn, org);
        return response;
      }),

    /** Streams messages of the viewer’s organization, or of the one that `org` in the query names. */
    stream: (
      request: Request,
      make: (viewer: Viewer, site: Site) => (gone: AbortSignal) => AsyncIterable<Message>,
    ): Promise<Response> =>
      answer(request, async (visitor, here) => {
        const named = new URL(request.url).searchParams.get("org");
        const viewer = visitor.signedIn && named !== null ? toViewer(visitor.signedIn, named) : visitor.viewer;
        const [response] = await inOrgOf({ ...visitor, viewer }, (viewer) => {
          const messages = make(viewer, here);
          return streams.answer(viewer.org, (gone) => whileAllowed(request, viewer, messages(gone)));
        });
        return response;
      }),

    /** Handles a form for a person whose role allows `act`. API keys are refused. */
    submit: (
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
            throw new AppError("forbidden", "API keys can only read pages; use the REST API to make changes");
          const form = await readForm(request, deps.baseUrl());
          // Another tab may have switched organizations: the form acts in the organization it was rendered for.
          const madeFor = form.get(forms.madeFor) ?? seen.org;
          const viewer = madeFor === seen.org ? seen : toViewer(signedIn, madeFor);
          if (!viewer)
            throw new AppError(
              "forbidden",
              "you are no longer a member of the organization that this page belongs to; nothing was changed",
            );
          if (viewer !== seen) people.chooseOrg(signedIn, madeFor);
          if (!may(viewer, act))
            throw new AppError(
              "forbidden",
              `this requires the role ${roleFor(act)}; yours is ${viewer.role}. Owners can change roles in Settings > Members`,
            );
          return make({ ...viewer, person: signedIn.person }, form, here);
        },
        { isPublic: true },
      ),

    /** Shows or handles a page of the person’s own account, in any organization or none. */
    showAccount: (
      request: Request,
      make: (self: { signedIn: SignedIn; viewer: Viewer | null; form: URLSearchParams; site: Site }) => Answer,
    ): Promise<Response> =>
      answer(request, async ({ signedIn, viewer }, here) => {
        if (!signedIn) throw new AppError("forbidden", "API keys have no account; sign in instead");
        const form = request.method === "GET" ? new URLSearchParams() : await readForm(request, deps.baseUrl());
        return make({ signedIn, viewer, form, site: here });
      }),

    /** Shows a public page. */
    showPublic: (request: Request, make: (visitor: Visitor, site: Site) => Answer): Promise<Response> =>
      answer(request, make, { isPublic: true }),

    /** Handles a form of a public page. */
    submitPublic: (
      request: Request,
      make: (visitor: Visitor, form: URLSearchParams, site: Site) => Answer,
    ): Promise<Response> =>
      answer(
        request,
        async (visitor, here) => make(visitor, await readForm(request, deps.baseUrl(), publicFormBytes), here),
        {
          isPublic: true,
        },
      ),

    /** Adds cookies to a response. */
    withCookies(response: Response, cookies: string[]): Response {
      for (const cookie of cookies) response.headers.append("set-cookie", cookie);
      return response;
    },
  };
}

const redirect = ({ base }: Site, path: string): Response =>
  new Response(null, { status: 303, headers: { location: base + path, "cache-control": "no-store" } });

/** Response for unauthenticated requests: browsers are sent to sign in, scripts get a 401. */
function askWho(request: Request, here: Site): Response {
  const { pathname, search } = new URL(request.url);
  if (isPart(request)) return privateAnswer("html", renderToString(<SignedOutNote site={here} />), 401);
  if (wantsHtml(request) && !request.headers.get("authorization")) {
    const next = request.method === "GET" ? toNext(pathname.slice(here.base.length) + search) : "/";
    return redirect(here, next === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(next)}`);
  }
  const body = toPage(<KeyNeededPage site={here} path={pathname} />);
  return privateAnswer("html", body, 401, { "www-authenticate": "Bearer" });
}

/** Whether a script on a page requests a fragment or a stream rather than a whole page. */
const isPart = ({ headers }: Request): boolean =>
  headers.has("hx-request") || (headers.get("accept") ?? "").includes("text/event-stream");

/** An error page with the status of the error. */
export function errorAnswer(site: Site, request: Request, error: AppError, viewer?: Viewer): Response {
  const { pathname } = new URL(request.url);
  const status = statusOf(error);
  const page = <ErrorPage {...{ site, viewer, path: pathname, status, error }} />;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(page), status, wait);
}
