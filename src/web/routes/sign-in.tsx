import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { mailReset, sendsMail } from "../../auth/mail.ts";
import { allowsPasskeys } from "../../auth/passkeys.ts";
import { findPerson, signIn, signOut } from "../../auth/people.ts";
import { readReset, resetPassword, toResetPath } from "../../auth/resets.ts";
import { isWithoutPeople } from "../../auth/setup.ts";
import { countSignInAttempt } from "../../auth/sign-in-attempts.ts";
import { beginSso, endSso, ssoNameOf } from "../../auth/sso.ts";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { toPathAfterSignIn } from "../credential.ts";
import { showPublic, submitPublic } from "../page-requests.tsx";
import { formErrorResponse, redirect, seeOther, withCookies } from "../page-responses.ts";
import { ResetPage } from "../pages/invite.tsx";
import { ForgottenPage, SignInPage } from "../pages/sign-in.tsx";
import { clientOf } from "../visitors.ts";

export const TokenParams = Type.Object({ token: Type.String({ maxLength: 500 }) });

const ssoErrors = new Map(
  Object.entries({
    not_invited: "This email address hasn’t been invited. Ask an owner of your organization to invite you.",
    account_not_linked:
      "An account with this email address already exists, and the identity provider hasn’t verified the address. Sign in with your password.",
  }),
);
const ssoFailedMessage = "Single sign-on failed. Try again, or sign in with your password.";

const noMailError = new AppError(
  "not_found",
  "This server does not send email. Ask an owner for a password reset link.",
);

/** The ways to sign in, besides with a password. */
const signInOptions = (ctx: Context) => ({
  ssoName: ssoNameOf(ctx),
  sendsMail: sendsMail(ctx),
  isUnused: isWithoutPeople(ctx),
  allowsPasskeys: allowsPasskeys(ctx),
});

/** Sign-in, sign-out and password reset. */
export const signInPages = (ctx: Context) =>
  new Elysia({ name: "sign-in pages" })
    .get("/sign-in", ({ request }) =>
      showPublic(ctx, request, ({ signedIn }, site) => {
        const { searchParams } = new URL(request.url);
        const next = toPathAfterSignIn(searchParams.get("next"));
        const error = searchParams.get("error");
        const errorMessage = error === null ? undefined : (ssoErrors.get(error) ?? ssoFailedMessage);
        return signedIn ? seeOther(ctx, next) : <SignInPage {...{ site, next, errorMessage, ...signInOptions(ctx) }} />;
      }),
    )
    // This is a GET, because the CSP forbids forms that redirect to another origin.
    .get("/sign-in/oidc", ({ request }) =>
      showPublic(ctx, request, async () => {
        const next = toPathAfterSignIn(new URL(request.url).searchParams.get("next"));
        const { location, cookies } = await beginSso(ctx, next, clientOf(request));
        return withCookies(redirect(location), cookies);
      }),
    )
    .get("/sign-in/callback/oidc", ({ request }) =>
      showPublic(ctx, request, async () => {
        const query = Object.fromEntries(new URL(request.url).searchParams);
        const { location, cookies } = await endSso(ctx, query, clientOf(request));
        return withCookies(redirect(location), cookies);
      }),
    )
    .get("/sign-in/forgotten", ({ request }) =>
      showPublic(ctx, request, (_, site) => {
        if (!sendsMail(ctx)) throw noMailError;
        return <ForgottenPage site={site} />;
      }),
    )
    .post("/sign-in/forgotten", ({ request }) =>
      submitPublic(ctx, request, (_, form, site) => {
        if (!sendsMail(ctx)) throw noMailError;
        const email = (form.get("email") ?? "").trim().toLowerCase();
        try {
          countSignInAttempt(ctx, `forgotten ${email}`, clientOf(request).address);
          const person = findPerson(ctx, email);
          // Not awaited, because the response time would reveal whether the address is known.
          if (person) void mailReset(ctx, person.email, toResetPath(ctx, person));
          return <ForgottenPage site={site} email={email} />;
        } catch (error) {
          return formErrorResponse(error, (errorMessage) => <ForgottenPage {...{ site, errorMessage }} />);
        }
      }),
    )
    .post("/sign-in", ({ request }) =>
      submitPublic(ctx, request, async (_, form, site) => {
        const next = toPathAfterSignIn(form.get("next"));
        const email = form.get("email") ?? "";
        try {
          const cookies = await signIn(ctx, email, form.get("password") ?? "", clientOf(request));
          return withCookies(seeOther(ctx, next), cookies);
        } catch (error) {
          return formErrorResponse(error, (errorMessage) => (
            <SignInPage {...{ site, next, email, errorMessage, ...signInOptions(ctx) }} />
          ));
        }
      }),
    )
    .post("/sign-out", ({ request }) =>
      submitPublic(ctx, request, async (_, form) => {
        const next = toPathAfterSignIn(form.get("next"));
        const cookies = await signOut(ctx, clientOf(request));
        return withCookies(seeOther(ctx, next === "/" ? "/sign-in" : next), cookies);
      }),
    )
    .get(
      "/reset/:token",
      ({ request, params }) =>
        showPublic(ctx, request, (_, site) => {
          const person = readReset(ctx, params.token);
          return <ResetPage {...{ site, path: `/reset/${params.token}`, person }} />;
        }),
      { params: TokenParams },
    )
    .post(
      "/reset/:token",
      ({ request, params }) =>
        submitPublic(ctx, request, async (_, form, site) => {
          const person = readReset(ctx, params.token);
          try {
            const password = form.get("password") ?? "";
            const cookies = await resetPassword(ctx, params.token, password, clientOf(request));
            return withCookies(seeOther(ctx, "/"), cookies);
          } catch (error) {
            return formErrorResponse(error, (errorMessage) => (
              <ResetPage {...{ site, path: `/reset/${params.token}`, person, errorMessage }} />
            ));
          }
        }),
      { params: TokenParams },
    );
