import { Elysia } from "elysia";
import type { SignedIn } from "../../auth/people.ts";
import { AppError } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { hidden } from "../describe.ts";
import { type Front, fromOf } from "../front.tsx";
import { AccountPage } from "../pages/account.tsx";
import { againWith, html } from "./people.tsx";

const done = new Map(
  Object.entries({
    name: "The name is saved.",
    password: "The password is changed. You are signed out everywhere else.",
    ended: "That sign-in is over.",
    left: "You left the organisation.",
  }),
);

/** What people have and change themselves. */
export const accountPages = ({ people, orgs, deps }: Service, front: Front) => {
  const shown = (signedIn: SignedIn) => ({
    person: signedIn.person,
    hasPassword: people.hasPassword(signedIn),
    signIns: people.listSignIns(signedIn),
    memberships: people.membershipsOf(signedIn.person.id),
    mayFound: deps.config.people.mayFound,
  });
  const to = (told: string) => front.seeOther(`/account?told=${told}`);

  /** Does what the person asks for; what is refused is said on the page. */
  const change = (
    request: Request,
    work: (signedIn: SignedIn, form: URLSearchParams) => Response | Promise<Response>,
  ) =>
    front.own(request, async ({ signedIn, viewer, form, site }) => {
      try {
        return await work(signedIn, form);
      } catch (error) {
        return againWith(error, (wrong) => <AccountPage {...{ site, viewer, ...shown(signedIn), wrong }} />);
      }
    });

  return new Elysia({ name: "account pages" })
    .get(
      "/account",
      ({ request }) =>
        front.own(request, ({ signedIn, viewer, site }) => {
          const told = new URL(request.url).searchParams.get("told") ?? "";
          return html(<AccountPage {...{ site, viewer, ...shown(signedIn), done: done.get(told) }} />);
        }),
      hidden,
    )
    .post(
      "/account/name",
      ({ request }) =>
        change(request, (signedIn, form) => {
          people.rename(signedIn, form.get("name") ?? "");
          return to("name");
        }),
      hidden,
    )
    .post(
      "/account/password",
      ({ request }) =>
        change(request, async (signedIn, form) => {
          const [present, next] = [form.get("present") ?? "", form.get("next") ?? ""];
          return front.withCookies(
            to("password"),
            await people.changePassword(signedIn, present, next, fromOf(request)),
          );
        }),
      hidden,
    )
    .post(
      "/account/end",
      ({ request }) =>
        change(request, (signedIn, form) => {
          people.endSignIn(signedIn, form.get("signIn") ?? undefined);
          return to("ended");
        }),
      hidden,
    )
    .post(
      "/account/organisation",
      ({ request }) =>
        change(request, (signedIn, form) => {
          people.chooseOrg(signedIn, form.get("org") ?? "");
          return front.seeOther("/");
        }),
      hidden,
    )
    .post(
      "/account/leave",
      ({ request }) =>
        change(request, async (signedIn, form) => {
          const org = people.membershipsOf(signedIn.person.id).find((each) => each.org === form.get("org"));
          if (!org) throw new AppError("not_found", "there is no such organisation");
          await people.leaveOrg(org.org, signedIn, fromOf(request));
          return to("left");
        }),
      hidden,
    )
    .post(
      "/account/found",
      ({ request }) =>
        change(request, async (signedIn, form) => {
          if (!deps.config.people.mayFound)
            throw new AppError("forbidden", "whoever runs this service makes organisations: evald org create");
          const { id } = orgs.createOrg(form.get("orgName") ?? "");
          await people.addOwner(id, signedIn);
          return front.seeOther("/");
        }),
      hidden,
    );
};
