import { renderToString } from "preact-render-to-string";
import { chooseOrg } from "../auth/people.ts";
import type { Person, SignedIn } from "../auth/person.ts";
import { isUploadToken, toUploadToken } from "../auth/uploads.ts";
import type { OrgId } from "../context.ts";
import { AppError } from "../errors.ts";
import { maxRequestBodySize } from "../http/body.ts";
import type { Message } from "../http/event-stream.ts";
import { answerStream } from "../http/event-stream.ts";
import { watchDatabase } from "../runs/follow.ts";
import type { Service } from "../service.ts";
import { compressed, privateAnswer, statusOf, wantsHtml } from "./answer.ts";
import { forms, toPage } from "./components/layout.tsx";
import { toNext } from "./credential.ts";
import { readForm } from "./form-origin.ts";
import { createLiveParts } from "./live.ts";
import { ErrorPage, KeyNeededPage, SignedOutNote, UnsentPage } from "./pages/error.tsx";
import type { Site } from "./site.ts";
import { toSite } from "./site.ts";
import { clearToast, findToast, type ToastCode, toastCookie } from "./toasts.ts";
import { type Act, may, roleFor, type Viewer } from "./viewer.ts";
import { type Answer, createVisitors, needOrg, type Visitor } from "./visitors.ts";

/** A viewer who submits a form: always a person, never an API key. */
export type Actor = Viewer & { person: NonNullable<Viewer["person"]> };

const uploadName = "upload";
const formBytes = 1024 * 1024;
/** Anyone can send a form that needs no sign-in. */
const publicFormBytes = 64 * 1024;
/** A form with files, after a sign-in has expired as base64. */
const uploadFormBytes = maxRequestBodySize;

export type PageRequests = ReturnType<typeof createPageRequests>;

/** Authentication, permissions, CSRF checks and error pages for all page routes. */
export function createPageRequests(service: Service) {
  const { ctx } = service;
  const { findVisitor, toViewer, inOrgOf, whileAllowed } = createVisitors(service);
  const liveParts = createLiveParts((signal) => watchDatabase(service.ctx, signal));
  const readForms = createFormReaders(service);
  const site = (request?: Request) => toSite(ctx, request);
  const redirects = createRedirects(site);

  async function answer(
    request: Request,
    make: (visitor: Visitor, site: Site) => Answer,
    { isPublic = false } = {},
  ): Promise<Response> {
    const here = site(request);
    const visitor = await findVisitor(request);
    const { viewer, signedIn, cookies } = visitor;
    let response: Response;
    try {
      response = viewer || signedIn || isPublic ? await make(visitor, here) : askWho(request, here);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      response = errorAnswer(here, request, error, visitor);
    }
    response = compressed(request, response);
    // Cookies of a session that the page sets take precedence over a renewed one.
    if (!response.headers.getSetCookie().some((cookie) => cookie.includes("session_token")))
      for (const cookie of cookies) response.headers.append("set-cookie", cookie);
    return response;
  }

  return {
    site,
    ...redirects,
    uploadQuery: readForms.uploadQuery,

    /** Shows a page of the viewer’s organization. Requires signing in or an API key. */
    show: (request: Request, make: (viewer: Viewer, site: Site) => Answer): Promise<Response> =>
      answer(request, async (visitor, here) => {
        const clean = withoutEmpty(request.url);
        // Forms send empty fields. With JavaScript they don't, and a part of a page has no URL of its own to correct.
        if (clean !== null && !isPart(request))
          return new Response(null, {
            status: 303,
            headers: { location: clean, "cache-control": "private, no-store" },
          });
        const toast = isPart(request) ? null : findToast(request);
        const [response, { org }] = await inOrgOf(visitor, (viewer) =>
          make(toast ? { ...viewer, toast } : viewer, here),
        );
        if (clean !== null) response.headers.set("hx-push-url", clean);
        if (toast) response.headers.append("set-cookie", clearToast(here.base));
        if (visitor.signedIn && org !== visitor.viewer?.org && !isPart(request)) chooseOrg(ctx, visitor.signedIn, org);
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
          return answerStream(ctx, viewer.org, (gone) => whileAllowed(request, viewer, messages(gone)));
        });
        return response;
      }),

    /** Streams a part of a page whenever it changes. The part depends only on the organization and the URL. */
    live(request: Request, make: (viewer: Viewer, site: Site) => () => string): Promise<Response> {
      return this.stream(request, (viewer, here) => {
        const { pathname, search } = new URL(request.url);
        const render = make(viewer, here);
        return (gone) => liveParts.follow(`${viewer.org} ${pathname}${search}`, render, gone);
      });
    },

    /** Handles a form for a person whose role allows `act`. API keys are refused. `files`: names of its fields with files; its action has the `uploadQuery`. */
    submit: (
      request: Request,
      act: Act,
      make: (viewer: Actor, form: URLSearchParams, site: Site) => Answer,
      { files = [] }: { files?: readonly string[] } = {},
    ): Promise<Response> =>
      answer(
        request,
        async (visitor, here) => {
          const { signedIn } = visitor;
          if (!visitor.viewer && !signedIn)
            return await askAgain(request, here, (sent) => readForms.ofStranger(sent, files));
          const seen = needOrg(visitor);
          if (seen.person === null || !signedIn)
            throw new AppError("forbidden", "API keys can only read pages. Use the REST API to make changes.");
          const form = await readForms.ofPerson(request, files);
          // Another tab may have switched organizations: the form acts in the organization it was rendered for.
          const madeFor = form.get(forms.madeFor) ?? seen.org;
          const viewer = madeFor === seen.org ? seen : toViewer(signedIn, madeFor);
          if (!viewer)
            throw new AppError(
              "forbidden",
              "You are no longer a member of the organization that this page belongs to. Nothing was changed.",
            );
          if (viewer !== seen) chooseOrg(ctx, signedIn, madeFor);
          checkRole(viewer, act);
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
        if (!signedIn) throw new AppError("forbidden", "API keys have no account. Sign in instead.");
        const form = request.method === "GET" ? new URLSearchParams() : await readForms.ofPerson(request);
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
      answer(request, async (visitor, here) => make(visitor, await readForms.ofStranger(request), here), {
        isPublic: true,
      }),
  };
}

function checkRole(viewer: Viewer, act: Act): void {
  if (may(viewer, act)) return;
  const detail = `This requires the role ${roleFor(act)}; yours is ${viewer.role}. Owners can change roles in Settings > Members.`;
  throw new AppError("forbidden", detail);
}

const limitsOf = (textBytes: number, files: readonly string[] = []) => ({
  textBytes,
  files,
  fileBytes: files.length > 0 ? uploadFormBytes : textBytes,
});

/** Reads forms up to a size that depends on who sends them. `files`: names of fields with files. */
const createFormReaders = ({ ctx }: Pick<Service, "ctx">) => ({
  /** Query of the action of a form with files. */
  uploadQuery: (org: OrgId, { id }: Person) => `?${uploadName}=${toUploadToken(ctx, org, id)}`,

  ofPerson: (request: Request, files: readonly string[] = []) =>
    readForm(request, ctx.baseUrl(), limitsOf(formBytes, files)),

  /** A form with files is kept while someone who was signed in when they opened it signs in again. */
  ofStranger(request: Request, files: readonly string[] = []) {
    const token = new URL(request.url).searchParams.get(uploadName) ?? "";
    const isKept = files.length > 0 && isUploadToken(ctx, token);
    return readForm(request, ctx.baseUrl(), isKept ? limitsOf(formBytes, files) : limitsOf(publicFormBytes));
  },
});

/** The path and query of a URL without empty parameters, which browsers send for empty fields; null if it has none. */
function withoutEmpty(url: string): string | null {
  const { pathname, searchParams } = new URL(url);
  const kept = [...searchParams].filter(([, value]) => value.trim() !== "");
  if (kept.length === searchParams.size) return null;
  return kept.length === 0 ? pathname : `${pathname}?${new URLSearchParams(kept)}`;
}

/** Redirects after a form. */
const createRedirects = (site: () => Site) => ({
  /** `path`: without the base. */
  seeOther: (path: string): Response => redirect(site(), path),

  /** Redirects to a page that shows a message about the change. `id`: of what was changed, for Undo. */
  seeChanged(path: string, code: ToastCode, id?: string): Response {
    const response = redirect(site(), path);
    response.headers.append("set-cookie", toastCookie(site().base, code, id));
    return response;
  },

  /** Adds cookies to a response. */
  withCookies(response: Response, cookies: string[]): Response {
    for (const cookie of cookies) response.headers.append("set-cookie", cookie);
    return response;
  },
});

const redirect = ({ base }: Site, path: string): Response =>
  new Response(null, { status: 303, headers: { location: base + path, "cache-control": "no-store" } });

/** Response for an unauthenticated form: keeps the submitted values to send again after signing in. */
async function askAgain(
  request: Request,
  here: Site,
  read: (request: Request) => Promise<URLSearchParams>,
): Promise<Response> {
  if (isPart(request) || request.headers.get("authorization") || !wantsHtml(request)) return askWho(request, here);
  const form = await read(request);
  const { pathname, search } = new URL(request.url);
  return privateAnswer("html", toPage(<UnsentPage site={here} path={pathname + search} form={form} />), 401);
}

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
export function errorAnswer(site: Site, request: Request, error: AppError, visitor?: Visitor): Response {
  const { pathname } = new URL(request.url);
  const status = statusOf(error);
  const page = <ErrorPage {...{ site, visitor, path: pathname, status, error }} />;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(page), status, wait);
}
