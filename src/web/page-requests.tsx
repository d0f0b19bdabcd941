import { renderToString } from "preact-render-to-string";
import { chooseOrg } from "../auth/people.ts";
import { CodeNeeded, type SignedIn } from "../auth/person.ts";
import { ssoNameOf } from "../auth/sso.ts";
import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { identifyActor } from "../http/caller.ts";
import { type Message, streamResponse } from "../http/event-stream.ts";
import { nextTurn } from "../http/turns.ts";
import { orgField } from "./components/layout.tsx";
import { toPathAfterSignIn } from "./credential.ts";
import { followPart } from "./live.ts";
import {
  formErrorResponse,
  type PageOrResponse,
  pageResponse,
  retryHeaders,
  seeOther,
  toResponse,
  withCookies,
} from "./page-responses.ts";
import { BarredPage } from "./pages/barred.tsx";
import { ConfirmPage, UnconfirmedError } from "./pages/confirm.tsx";
import { ErrorPage, SignedOutNote, SignInNeededPage, UnsentPage } from "./pages/error.tsx";
import type { FormResult } from "./pages/settings.tsx";
import { receiveForm, receivePublicForm } from "./received-forms.ts";
import { compress, privateResponse, statusOf, wantsHtml } from "./responses.ts";
import { type Site, toSite } from "./site.ts";
import { findToast, toastRemovalCookie } from "./toasts.ts";
import { type Action, may, refusalOf, type Viewer } from "./viewer.ts";
import { BarredError, findVisitor, requireOrg, showInOrg, toViewer, type Visitor, whileAllowed } from "./visitors.ts";

/** A viewer who submits a form. This is always a person, never an API key. */
export type Actor = Viewer & Pick<SignedIn, "person" | "method">;

type MaybePromise<T> = T | Promise<T>;

/** Shows a page of the viewer's organization. The viewer must be signed in or use an API key. */
export const showPage = (
  ctx: Context,
  request: Request,
  show: (viewer: Viewer, site: Site) => MaybePromise<PageOrResponse>,
): Promise<Response> =>
  respond(ctx, request, async (visitor, site) => {
    const cleanUrl = findCleanUrl(request.url);
    const isFragment = isFragmentRequest(request);
    if (cleanUrl !== null && !isFragment)
      return new Response(null, { status: 303, headers: { location: cleanUrl, "cache-control": "private, no-store" } });
    const toast = isFragment ? null : findToast(request);
    const [response, { org }] = await showInOrg(ctx, visitor, async (viewer) =>
      toResponse(await show(toast ? { ...viewer, toast } : viewer, site)),
    );
    // A request for a part of a page isn't redirected. Instead, htmx corrects the URL of the page.
    if (cleanUrl !== null) response.headers.set("hx-push-url", cleanUrl);
    if (toast) response.headers.append("set-cookie", toastRemovalCookie(site.base));
    // The page was found in another organization of the person. That organization becomes the current one.
    if (visitor.signedIn && org !== visitor.viewer?.org && !isFragment) chooseOrg(ctx, visitor.signedIn, org);
    return response;
  });

/** Streams messages of the viewer's organization, or of the one that `org` in the query names. */
export const streamPage = (
  ctx: Context,
  request: Request,
  follow: (viewer: Viewer, site: Site) => (signal: AbortSignal) => AsyncIterable<Message>,
): Promise<Response> =>
  respond(ctx, request, async (visitor, site) => {
    const org = new URL(request.url).searchParams.get("org");
    const visitorOfOrg =
      visitor.signedIn && org !== null
        ? { ...visitor, viewer: toViewer(ctx, visitor.signedIn, org), barred: null }
        : visitor;
    const [response] = await showInOrg(ctx, visitorOfOrg, (viewer) => {
      const messages = follow(viewer, site);
      return streamResponse(ctx, viewer.org, (signal) => whileAllowed(ctx, request, viewer.org, messages(signal)));
    });
    return response;
  });

/** Streams a part of a page whenever it changes. The part may depend only on the organization, on what the viewer may do, and on the URL. */
export const streamPart = (
  ctx: Context,
  request: Request,
  show: (viewer: Viewer, site: Site) => () => string,
): Promise<Response> =>
  streamPage(ctx, request, (viewer, site) => {
    const { pathname, search } = new URL(request.url);
    const render = show(viewer, site);
    const role = viewer.person === null ? "API key" : viewer.role;
    return (signal) => followPart(ctx, viewer.org, `${role} ${pathname}${search}`, render, signal);
  });

/**
 * Handles a form of a person whose role allows `action`. API keys are rejected. `files`: the names of fields with files. A form with files must add
 * `uploadQuery` to its action.
 */
export const submitForm = (
  ctx: Context,
  request: Request,
  action: Action,
  handle: (viewer: Actor, form: URLSearchParams, site: Site) => MaybePromise<PageOrResponse>,
  files: readonly string[] = [],
): Promise<Response> =>
  respond(
    ctx,
    request,
    async (visitor, site) => {
      const { signedIn } = visitor;
      if (!visitor.viewer && !signedIn) return signedOutFormResponse(ctx, request, site, files);
      const current = requireOrg(visitor);
      if (current.person === null || !signedIn)
        throw new AppError("forbidden", "API keys can only read pages. Use the REST API to make changes.");
      const form = await receiveForm(ctx, request, files);
      // The form acts in the organization that it was rendered for, even if another tab has switched organizations.
      const org = form.get(orgField) ?? current.org;
      const viewer = org === current.org ? current : toViewer(ctx, signedIn, org);
      if (!viewer)
        throw new AppError(
          "forbidden",
          "You are no longer a member of the organization that this page belongs to. Nothing was changed.",
        );
      if (viewer !== current) chooseOrg(ctx, signedIn, org);
      requireRole(viewer, action);
      try {
        return await handle({ ...viewer, person: signedIn.person, method: signedIn.method }, form, site);
      } catch (error) {
        return askToConfirm(error, request, { site, viewer, form });
      }
    },
    // If the sender of a form is signed out, the form is not rejected. It is kept until they have signed in.
    { isPublic: true },
  );

/** Handles a form of a settings page. If that fails, `show` renders the page again with the submitted values and the error. */
export const submitOrShowAgain = (
  ctx: Context,
  request: Request,
  action: Action,
  show: (ctx: Context, viewer: Viewer, site: Site, result: FormResult) => Exclude<PageOrResponse, Response>,
  handle: (viewer: Actor, form: URLSearchParams, site: Site) => MaybePromise<PageOrResponse>,
  files: readonly string[] = [],
): Promise<Response> => {
  const handleOrShow = async (viewer: Actor, form: URLSearchParams, site: Site) => {
    try {
      return await handle(viewer, form, site);
    } catch (error) {
      return formErrorResponse(error, (errorMessage, formError) =>
        show(ctx, viewer, site, { errorMessage, formError, typedValues: form }),
      );
    }
  };
  return submitForm(ctx, request, action, handleOrShow, files);
};

/** The input for a page of the person's own account. */
export type AccountPageInput = { signedIn: SignedIn; viewer: Viewer | null; form: URLSearchParams; site: Site };

/** Shows or handles a page of the person's own account. The person may belong to any organization or to none. */
export const showAccount = (
  ctx: Context,
  request: Request,
  show: (account: AccountPageInput) => MaybePromise<PageOrResponse>,
): Promise<Response> =>
  respond(ctx, request, async ({ signedIn, viewer }, site) => {
    if (!signedIn) throw new AppError("forbidden", "API keys have no account. Sign in instead.");
    const form = request.method === "GET" ? new URLSearchParams() : await receiveForm(ctx, request);
    try {
      return await show({ signedIn, viewer, form, site });
    } catch (error) {
      return askToConfirm(error, request, { site, form });
    }
  });

/** Shows a public page. */
export const showPublic = (
  ctx: Context,
  request: Request,
  show: (visitor: Visitor, site: Site) => MaybePromise<PageOrResponse>,
): Promise<Response> => respond(ctx, request, show, { isPublic: true });

/** Handles a form of a public page. If a sign-in also needs a code, it asks for the code first, and then returns to the page. */
export const submitPublic = (
  ctx: Context,
  request: Request,
  handle: (visitor: Visitor, form: URLSearchParams, site: Site) => MaybePromise<PageOrResponse>,
): Promise<Response> =>
  showPublic(ctx, request, async (visitor, site) => {
    const form = await receivePublicForm(ctx, request);
    try {
      return await handle(visitor, form, site);
    } catch (error) {
      if (!(error instanceof CodeNeeded)) throw error;
      const next = toPathAfterSignIn(form.get("next") ?? new URL(request.url).pathname.slice(site.base.length));
      return withCookies(seeOther(ctx, `/sign-in/code?next=${encodeURIComponent(next)}`), error.cookies);
    }
  });

/** The URL is a secret. These headers keep it from leaking through referrers or search engines. */
const secretUrlHeaders = { "referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow" };

/** Shows a page to everyone who has its URL. */
export async function showByLink(
  ctx: Context,
  request: Request,
  show: (site: Site) => MaybePromise<Response>,
): Promise<Response> {
  let response: Response;
  try {
    response = await show(toSite(ctx, request));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    response = errorResponse(ctx, request, error);
  }
  for (const [name, value] of Object.entries(secretUrlHeaders)) response.headers.set(name, value);
  return response;
}

/** Responds to a request, whoever sent it. If `show` fails, it shows an error page. Adds cookies that renew the session. */
async function respond(
  ctx: Context,
  request: Request,
  show: (visitor: Visitor, site: Site) => MaybePromise<PageOrResponse>,
  { isPublic = false } = {},
): Promise<Response> {
  const site = toSite(ctx, request);
  const visitor = await findVisitor(ctx, request);
  await nextTurn(request);
  const { viewer, signedIn, cookies } = visitor;
  if (signedIn) identifyActor({ kind: "person", ...signedIn.person });
  let response: Response;
  try {
    response =
      viewer || signedIn || isPublic ? toResponse(await show(visitor, site)) : signInResponse(ctx, request, site);
  } catch (error) {
    response = failureResponse(ctx, request, error, visitor);
  }
  response = compress(request, response);
  // If the page sets cookies of a session, they take precedence over a renewed session.
  if (!response.headers.getSetCookie().some((cookie) => cookie.includes("session_token")))
    for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}

/** Shows an error to a person. Signed-in viewers keep their menu, unless finding the viewer also fails. */
export const showError = (ctx: Context, request: Request, error: AppError): Promise<Response> =>
  showPublic(ctx, request, (visitor) => errorResponse(ctx, request, error, visitor)).catch(() =>
    errorResponse(ctx, request, error),
  );

/** The error page for an error that has one. Rethrows all other errors. */
function failureResponse(ctx: Context, request: Request, error: unknown, visitor: Visitor): Response {
  if (error instanceof BarredError) {
    const person = visitor.signedIn?.person as SignedIn["person"];
    const page = <BarredPage {...error.barred} site={toSite(ctx, request)} person={person} ssoName={ssoNameOf(ctx)} />;
    return pageResponse(page, 403);
  }
  if (!(error instanceof AppError)) throw error;
  return errorResponse(ctx, request, error, visitor);
}

/** Asks for confirmation if a form failed because it was not confirmed. Rethrows all other errors. */
function askToConfirm(error: unknown, request: Request, page: { site: Site; viewer?: Viewer; form: URLSearchParams }) {
  if (!(error instanceof UnconfirmedError)) throw error;
  return (
    <ConfirmPage
      {...page}
      path={new URL(request.url).pathname}
      confirmation={error.confirmation}
      isMistyped={error.isMistyped}
    />
  );
}

function requireRole(viewer: Viewer, action: Action): void {
  if (may(viewer, action)) return;
  throw new AppError("forbidden", refusalOf(viewer, action));
}

/** The path and query of a URL without empty parameters; null if it has no empty parameters. Browsers send them for empty fields. */
function findCleanUrl(url: string): string | null {
  const { pathname, searchParams } = new URL(url);
  const nonEmpty = [...searchParams].filter(([, value]) => value.trim() !== "");
  if (nonEmpty.length === searchParams.size) return null;
  return nonEmpty.length === 0 ? pathname : `${pathname}?${new URLSearchParams(nonEmpty)}`;
}

/** Responds to a form whose sender is signed out. The submitted values are kept, so that they can be sent again after signing in. */
async function signedOutFormResponse(
  ctx: Context,
  request: Request,
  site: Site,
  files: readonly string[],
): Promise<Response> {
  if (isFragmentRequest(request) || request.headers.get("authorization") || !wantsHtml(request))
    return signInResponse(ctx, request, site);
  const form = await receivePublicForm(ctx, request, files);
  const { pathname, search } = new URL(request.url);
  return pageResponse(<UnsentPage site={site} path={pathname + search} form={form} />, 401);
}

/** Responds to an unauthenticated request. Browsers are redirected to the sign-in page, and scripts get a 401. */
function signInResponse(ctx: Context, request: Request, site: Site): Response {
  const { pathname, search } = new URL(request.url);
  if (isFragmentRequest(request)) return privateResponse("html", renderToString(<SignedOutNote site={site} />), 401);
  if (wantsHtml(request) && !request.headers.get("authorization")) {
    const next = request.method === "GET" ? toPathAfterSignIn(pathname.slice(site.base.length) + search) : "/";
    return seeOther(ctx, next === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(next)}`);
  }
  return pageResponse(<SignInNeededPage site={site} path={pathname} />, 401, { "www-authenticate": "Bearer" });
}

/** Whether a script on a page requests a fragment or a stream, and not a whole page. */
const isFragmentRequest = ({ headers }: Request): boolean =>
  headers.has("hx-request") || (headers.get("accept") ?? "").includes("text/event-stream");

/** An error page with the status of the error. */
export function errorResponse(ctx: Context, request: Request, error: AppError, visitor?: Visitor): Response {
  const { pathname } = new URL(request.url);
  const status = statusOf(error);
  const page = <ErrorPage {...{ site: toSite(ctx, request), visitor, path: pathname, status, error }} />;
  return pageResponse(page, status, retryHeaders(error));
}
