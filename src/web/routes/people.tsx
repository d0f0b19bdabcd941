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
import { SignInPage } from "../pages/signin.tsx";

/** Shows a form again with what was refused; what nobody foresaw goes on as it came. */
export function againWith(error: unknown, make: (wrong: string) => Parameters<typeof toPage>[0]): Response {
  if (!(error instanceof AppError)) throw error;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(make(sentenceOf(error.detail))), statusOf(error), wait);
}

/** A page for one reader. */
export const html = (made: Parameters<typeof toPage>[0]) => privateAnswer("html", toPage(made));

const Token = Type.Object({ token: Type.String({ maxLength: 500 }) });

/** How people come in and go. */
export const peoplePages = ({ people }: Service, front: Front) =>
  new Elysia({ name: "people pages" })
    .get(
      "/sign-in",
      ({ request }) =>
        front.greet(request, ({ signedIn }, site) => {
          const next = toNext(new URL(request.url).searchParams.get("next"));
          return signedIn ? front.seeOther(next) : html(<SignInPage {...{ site, next }} />);
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
            return againWith(error, (wrong) => <SignInPage {...{ site, next, email, wrong }} />);
          }
        }),
      hidden,
    )
    .post(
      "/sign-out",
      ({ request }) =>
        front.take(request, async () =>
          front.withCookies(front.seeOther("/sign-in"), await people.signOut(fromOf(request))),
        ),
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
          return html(<InvitePage {...{ site, path, invited, person: signedIn?.person ?? null }} />);
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
            return againWith(error, (wrong) => <InvitePage {...{ site, path, invited, person, name, wrong }} />);
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
    );
