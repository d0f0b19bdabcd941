import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { countSignInAttempt } from "../../auth/attempts.ts";
import { mailReset, sendsMail } from "../../auth/mail.ts";
import { findPerson, signIn, signOut } from "../../auth/people.ts";
import { readReset, resetPassword, toResetPath } from "../../auth/resets.ts";
import { beginSso, endSso, ssoNameOf } from "../../auth/sso.ts";
import { AppError } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { toNext } from "../credential.ts";
import { formError, pageAnswer } from "../page-answers.ts";
import type { PageRequests } from "../page-requests.tsx";
import { ResetPage } from "../pages/invite.tsx";
import { ForgottenPage, SignInPage } from "../pages/sign-in.tsx";
import { fromOf } from "../visitors.ts";

export const Token = Type.Object({ token: Type.String({ maxLength: 500 }) });

const ssoErrors = new Map(
  Object.entries({
    not_invited: "This email address hasn’t been invited. Ask an owner of your organization to invite you.",
    account_not_linked:
      "An account with this email address already exists, and the identity provider hasn’t verified the address. Sign in with your password.",
  }),
);
const ssoFailed = "Single sign-on failed. Try again, or sign in with your password.";

const noMail = new AppError("not_found", "This server does not send email. Ask an owner for a password reset link.");

const redirect = (location: string): Response =>
  new Response(null, { status: 303, headers: { location, "cache-control": "no-store" } });

/** Sign-in, sign-out and password reset. */
export const signInPages = ({ ctx }: Service, pages: PageRequests) => {
  const signInOptions = { ssoName: ssoNameOf(ctx), sendsMail: sendsMail(ctx) };
  return (
    new Elysia({ name: "sign-in pages" })
      .get("/sign-in", ({ request }) =>
        pages.showPublic(request, ({ signedIn }, site) => {
          const { searchParams } = new URL(request.url);
          const next = toNext(searchParams.get("next"));
          const error = searchParams.get("error");
          const wrong = error === null ? undefined : (ssoErrors.get(error) ?? ssoFailed);
          return signedIn
            ? pages.seeOther(next)
            : pageAnswer(<SignInPage {...{ site, next, wrong, ...signInOptions }} />);
        }),
      )
      // GET, because the CSP forbids a form that redirects to another origin.
      .get("/sign-in/oidc", ({ request }) =>
        pages.showPublic(request, async () => {
          const next = toNext(new URL(request.url).searchParams.get("next"));
          const { location, cookies } = await beginSso(ctx, next, fromOf(request));
          return pages.withCookies(redirect(location), cookies);
        }),
      )
      .get("/sign-in/callback/oidc", ({ request }) =>
        pages.showPublic(request, async () => {
          const query = Object.fromEntries(new URL(request.url).searchParams);
          const { location, cookies } = await endSso(ctx, query, fromOf(request));
          return pages.withCookies(redirect(location), cookies);
        }),
      )
      .get("/sign-in/forgotten", ({ request }) =>
        pages.showPublic(request, (_, site) => {
          if (!sendsMail(ctx)) throw noMail;
          return pageAnswer(<ForgottenPage site={site} />);
        }),
      )
      .post("/sign-in/forgotten", ({ request }) =>
        pages.submitPublic(request, (_, form, site) => {
          if (!sendsMail(ctx)) throw noMail;
          const email = (form.get("email") ?? "").trim().toLowerCase();
          try {
            countSignInAttempt(ctx, `forgotten ${email}`, fromOf(request).address);
            const person = findPerson(ctx, email);
            // Not awaited: the response time would reveal whether the address is known.
            if (person) void mailReset(ctx, person.email, toResetPath(ctx, person.id));
            return pageAnswer(<ForgottenPage site={site} email={email} />);
          } catch (error) {
            return formError(error, (wrong) => <ForgottenPage {...{ site, wrong }} />);
          }
        }),
      )
      .post("/sign-in", ({ request }) =>
        pages.submitPublic(request, async (_, form, site) => {
          const next = toNext(form.get("next"));
          const email = form.get("email") ?? "";
          try {
            const cookies = await signIn(ctx, email, form.get("password") ?? "", fromOf(request));
            return pages.withCookies(pages.seeOther(next), cookies);
          } catch (error) {
            return formError(error, (wrong) => <SignInPage {...{ site, next, email, wrong, ...signInOptions }} />);
          }
        }),
      )
      .post("/sign-out", ({ request }) =>
        pages.submitPublic(request, async (_, form) => {
          const next = toNext(form.get("next"));
          const cookies = await signOut(ctx, fromOf(request));
          return pages.withCookies(pages.seeOther(next === "/" ? "/sign-in" : next), cookies);
        }),
      )
      .get(
        "/reset/:token",
        ({ request, params }) =>
          pages.showPublic(request, (_, site) => {
            const person = readReset(ctx, params.token);
            return pageAnswer(<ResetPage {...{ site, path: `/reset/${params.token}`, person }} />);
          }),
        { params: Token },
      )
      .post(
        "/reset/:token",
        ({ request, params }) =>
          pages.submitPublic(request, async (_, form, site) => {
            const person = readReset(ctx, params.token);
            try {
              const password = form.get("password") ?? "";
              const cookies = await resetPassword(ctx, params.token, password, fromOf(request));
              return pages.withCookies(pages.seeOther("/"), cookies);
            } catch (error) {
              return formError(error, (wrong) => (
                <ResetPage {...{ site, path: `/reset/${params.token}`, person, wrong }} />
              ));
            }
          }),
        { params: Token },
      )
  );
};
