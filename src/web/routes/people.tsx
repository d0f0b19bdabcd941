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
import { SetupPage } from "../pages/setup.tsx";
import { SignInPage } from "../pages/signin.tsx";

/** Shows a form again with what was refused; what nobody foresaw goes on as it came. */
function againWith(error: unknown, make: (wrong: string) => Parameters<typeof toPage>[0]): Response {
  if (!(error instanceof AppError)) throw error;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(make(sentenceOf(error.detail))), statusOf(error), wait);
}

const html = (made: Parameters<typeof toPage>[0]) => privateAnswer("html", toPage(made));

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
    );
