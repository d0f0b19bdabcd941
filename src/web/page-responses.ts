import type { JSX } from "preact";
import type { Context } from "../context.ts";
import { AppError, toSentence } from "../errors.ts";
import { renderPage } from "./components/layout.tsx";
import { type FormError, toFormError } from "./components/schema-form.tsx";
import { privateResponse, statusOf } from "./responses.ts";
import { type ToastCode, toastCookie } from "./toasts.ts";

/** What a handler of a route returns: a page to render, or any other response. */
export type PageOrResponse = Response | JSX.Element;

/** Turns the result of a handler into a response. */
export const toResponse = (result: PageOrResponse): Response =>
  result instanceof Response ? result : pageResponse(result);

/** A private HTML page. */
export const pageResponse = (page: JSX.Element, status = 200, headers?: Record<string, string>): Response =>
  privateResponse("html", renderPage(page), status, headers);

/** Shows a form again with its error. Rethrows unexpected errors. */
export function formErrorResponse(
  error: unknown,
  show: (errorMessage: string, formError: FormError) => JSX.Element,
): Response {
  if (!(error instanceof AppError)) throw error;
  return pageResponse(show(toSentence(error.detail), toFormError(error)), statusOf(error), retryHeaders(error));
}

/** The headers that tell a client when it may try again after a rate limit. */
export const retryHeaders = ({ retryAfterSeconds }: AppError): Record<string, string> =>
  retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };

/** Redirects after a form. `path`: without the base path. */
export const seeOther = ({ config }: Context, path: string): Response => redirect(config.basePath + path);

/** Redirects to a page that shows a message about a change. `id`: the ID of the changed item, for Undo. */
export const seeOtherWithToast = (ctx: Context, path: string, code: ToastCode, id?: string): Response =>
  withCookies(seeOther(ctx, path), [toastCookie(ctx.config.basePath, code, id)]);

/** Redirects after a form, with status 303. */
export const redirect = (location: string): Response =>
  new Response(null, { status: 303, headers: { location, "cache-control": "no-store" } });

/** Adds cookies to a response. */
export function withCookies(response: Response, cookies: string[]): Response {
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}
