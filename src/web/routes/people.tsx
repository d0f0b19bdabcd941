import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { AppError } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { privateAnswer, statusOf } from "../answer.ts";
import { toNext } from "../credential.ts";
import { hidden } from "../describe.ts";
import { type Front, fromOf } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { sentenceOf } from "../pages/error.tsx";
import { InvitePage, ResetPage } from "../pages/invite.tsx";
import { SetupPage } from "../pages/setup.tsx";
import { ForgottenPage, SignInPage } from "../pages/signin.tsx";

/** Shows a form again with what was refused; what nobody foresaw goes on as it came. */
export function againWith(error: unknown, make: (wrong: string) => Parameters<typeof toPage>[0]): Response {
  if (!(error instanceof AppError)) throw error;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(make(sentenceOf(error.detail))), statusOf(error), wait);
}

/** A page for one reader. */
export const html = (made: Parameters<typeof toPage>[0]) => privateAnswer("html", toPage(made));

const Token = Type.Object({ token: Type.String({ maxLength: 500 }) });

const ssoErrors = new Map(
  Object.entries({
    not_invited: "Nobody invited the address that the identity provider told. Ask an owner of your organisation.",
    account_not_linked:
      "The identity provider has not verified your address, and an account with it is here already. Use your password.",
  }),
);
const ssoFailed = "Signing in with the identity provider did not work. Try again, or use your password.";

const noMail = new AppError("not_found", "no mail is sent here; an owner can give you a link that sets a new password");

const leadTo = (location: string): Response =>
  new Response(null, { status: 303, headers: { location, "cache-control": "no-store" } });

/** How people come in and go. */
export const peoplePages = ({ people }: Service, front: Front) => {
  const ways = { ssoName: people.ssoName, sendsMail: people.sendsMail };
  return (
    new Elysia({ name: "people pages" })
      .get(
        "/sign-in",
        ({ request }) =>
          front.greet(request, ({ signedIn }, site) => {
            const { searchParams } = new URL(request.url);
            const next = toNext(searchParams.get("next"));
            const error = searchParams.get("error");
            const wrong = error === null ? undefined : (ssoErrors.get(error) ?? ssoFailed);
            return signedIn ? front.seeOther(next) : html(<SignInPage {...{ site, next, wrong, ...ways }} />);
          }),
        hidden,
      )
      // By GET, for a form may not lead to another origin.
      .get(
        "/sign-in/oidc",
        ({ request }) =>
          front.greet(request, async () => {
            const next = toNext(new URL(request.url).searchParams.get("next"));
            const { location, cookies } = await people.beginSso(next, fromOf(request));
            return front.withCookies(leadTo(location), cookies);
          }),
        hidden,
      )
      .get(
        "/sign-in/callback/oidc",
        ({ request }) =>
          front.greet(request, async () => {
            const query = Object.fromEntries(new URL(request.url).searchParams);
            const { location, cookies } = await people.endSso(query, fromOf(request));
            return front.withCookies(leadTo(location), cookies);
          }),
        hidden,
      )
      .get(
        "/sign-in/forgotten",
        ({ request }) =>
          front.greet(request, (_, site) => {
            if (!people.sendsMail) throw noMail;
            return html(<ForgottenPage site={site} />);
          }),
        hidden,
      )
      .post(
        "/sign-in/forgotten",
        ({ request }) =>
          front.take(request, (_, form, site) => {
            if (!people.sendsMail) throw noMail;
            const email = (form.get("email") ?? "").trim().toLowerCase();
            try {
              people.attempts.begin(`forgotten ${email}`, fromOf(request).address);
              const person = people.findPerson(email);
              // Not waited for: that would tell whether the address is known.
              if (person) void people.mailReset(person.email, people.toResetPath(person.id));
              return html(<ForgottenPage site={site} asked={email} />);
            } catch (error) {
              return againWith(error, (wrong) => <ForgottenPage {...{ site, wrong }} />);
            }
          }),
        hidden,
      )
      .post(
        "/sign-in",
        ({ request }) =>
          front.take(request, async (_, form, site) => {
            const next = toNext(form.get("next"));
            const email = form.get("email") ?? "";
            try {
              const cookies = await people.signIn(email, form.get("password") ?? "", fromOf(request));
              return front.withCookies(front.seeOther(next), cookies);
            } catch (error) {
              return againWith(error, (wrong) => <SignInPage {...{ site, next, email, wrong, ...ways }} />);
            }
          }),
        hidden,
      )
      .post(
        "/sign-out",
        ({ request }) =>
          front.take(request, async (_, form) => {
            const next = toNext(form.get("next"));
            const cookies = await people.signOut(fromOf(request));
            return front.withCookies(front.seeOther(next === "/" ? "/sign-in" : next), cookies);
          }),
        hidden,
      )
      .get(
        "/setup/:token",
        ({ request, params }) =>
          front.greet(request, (_, site) => {
            const { orgName } = people.readSetup(params.token);
            return html(<SetupPage {...{ site, path: `/setup/${params.token}`, orgName }} />);
          }),
        { params: Token, ...hidden },
      )
      .post(
        "/setup/:token",
        ({ request, params }) =>
          front.take(request, async (_, form, site) => {
            const { orgName } = people.readSetup(params.token);
            const filled = { name: form.get("name") ?? "", email: form.get("email") ?? "" };
            const person = { ...filled, password: form.get("password") ?? "" };
            try {
              return front.withCookies(front.seeOther("/"), await people.setUp(params.token, person, fromOf(request)));
            } catch (error) {
              const path = `/setup/${params.token}`;
              return againWith(error, (wrong) => <SetupPage {...{ site, path, orgName, filled, wrong }} />);
            }
          }),
        { params: Token, ...hidden },
      )
      .get(
        "/invite/:token",
        ({ request, params }) =>
          front.greet(request, ({ signedIn }, site) => {
            const invited = people.readInvitation(params.token);
            const path = `/invite/${params.token}`;
            return html(
              <InvitePage {...{ site, path, invited, person: signedIn?.person ?? null, ssoName: ways.ssoName }} />,
            );
          }),
        { params: Token, ...hidden },
      )
      .post(
        "/invite/:token",
        ({ request, params }) =>
          front.take(request, async ({ signedIn }, form, site) => {
            const invited = people.readInvitation(params.token);
            const name = form.get("name") ?? "";
            const given = { name, password: form.get("password") ?? "" };
            try {
              const cookies = await people.acceptInvitation(params.token, signedIn, given, fromOf(request));
              return front.withCookies(front.seeOther("/"), cookies);
            } catch (error) {
              const path = `/invite/${params.token}`;
              const person = signedIn?.person ?? null;
              return againWith(error, (wrong) => (
                <InvitePage {...{ site, path, invited, person, name, wrong, ssoName: ways.ssoName }} />
              ));
            }
          }),
        { params: Token, ...hidden },
      )
      .get(
        "/reset/:token",
        ({ request, params }) =>
          front.greet(request, (_, site) => {
            const person = people.readReset(params.token);
            return html(<ResetPage {...{ site, path: `/reset/${params.token}`, person }} />);
          }),
        { params: Token, ...hidden },
      )
      .post(
        "/reset/:token",
        ({ request, params }) =>
          front.take(request, async (_, form, site) => {
            const person = people.readReset(params.token);
            try {
              const password = form.get("password") ?? "";
              const cookies = await people.resetPassword(params.token, password, fromOf(request));
              return front.withCookies(front.seeOther("/"), cookies);
            } catch (error) {
              return againWith(error, (wrong) => (
                <ResetPage {...{ site, path: `/reset/${params.token}`, person, wrong }} />
              ));
            }
          }),
        { params: Token, ...hidden },
      )
  );
};
