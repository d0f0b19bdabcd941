import type { JSX } from "preact";
import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { privateAnswer, statusOf } from "./answer.ts";
import { renderPage } from "./components/layout.tsx";
import { type Fault, faultOf } from "./components/schema-form.tsx";
import { toSentence } from "./pages/error.tsx";
import { type ToastCode, toastCookie } from "./toasts.ts";

/** A page, or any other response. */
export type Answer = Response | JSX.Element;

export const toResponse = (answer: Answer): Response => (answer instanceof Response ? answer : pageAnswer(answer));

/** A private HTML page. */
export const pageAnswer = (page: JSX.Element, status = 200, headers?: Record<string, string>): Response =>
  privateAnswer("html", renderPage(page), status, headers);

/** Renders a form again with its error. Rethrows unexpected errors. */
export function formError(error: unknown, show: (errorMessage: string, fault: Fault) => JSX.Element): Response {
  if (!(error instanceof AppError)) throw error;
  return pageAnswer(show(toSentence(error.detail), faultOf(error)), statusOf(error), retryHeaders(error));
}

/** When a client may try again, for a rate limit. */
export const retryHeaders = ({ retryAfterSeconds }: AppError): Record<string, string> =>
  retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };

/** Redirects after a form. `path`: without the base. */
export const seeOther = ({ config }: Context, path: string): Response => redirect(config.basePath + path);

/** Redirects to a page that shows a message about the change. `id`: of what was changed, for Undo. */
export const seeOtherWithToast = (ctx: Context, path: string, code: ToastCode, id?: string): Response =>
  withCookies(seeOther(ctx, path), [toastCookie(ctx.config.basePath, code, id)]);

export const redirect = (location: string): Response =>
  new Response(null, { status: 303, headers: { location, "cache-control": "no-store" } });

/** Adds cookies to a response. */
export function withCookies(response: Response, cookies: string[]): Response {
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}
