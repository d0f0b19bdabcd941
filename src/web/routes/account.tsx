import { Elysia } from "elysia";
import { changePassword, endSignIn, hasPassword, listSignIns, renamePerson } from "../../auth/account.ts";
import { listOwnInvitations } from "../../auth/invitations.ts";
import { leaveOrg } from "../../auth/members.ts";
import { createOrgAsPerson } from "../../auth/orgs.ts";
import { chooseOrg, listMemberships } from "../../auth/people.ts";
import type { SignedIn } from "../../auth/person.ts";
import { addOwner } from "../../auth/setup.ts";
import { AppError } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { askBefore } from "../confirmation.tsx";
import { formError, pageAnswer } from "../page-answers.ts";
import type { PageRequests } from "../page-requests.tsx";
import { AccountPage } from "../pages/account.tsx";
import { fromOf } from "../visitors.ts";

/** What the page says after each form, by the value of `done` in its URL. */
const messages = new Map(
  Object.entries({
    name: "Name saved.",
    password: "Password changed. All other sessions were signed out.",
    ended: "Session signed out.",
    left: "You left the organization.",
  }),
);

/** Account page and its forms. */
export const accountPages = ({ ctx }: Service, pages: PageRequests) => {
  const shown = (signedIn: SignedIn) => ({
    person: signedIn.person,
    hasPassword: hasPassword(ctx, signedIn),
    signIns: listSignIns(ctx, signedIn),
    memberships: listMemberships(ctx, signedIn.person.id),
    invitations: listOwnInvitations(ctx, signedIn.person.id),
    mayCreateOrgs: ctx.config.people.canCreateOrgs,
  });
  const redirectAfter = (done: string) => pages.seeOther(`/account?done=${done}`);

  /** Runs `work` for a form. When it fails, the account page shows the error. */
  const change = (
    request: Request,
    work: (signedIn: SignedIn, form: URLSearchParams) => Response | Promise<Response>,
  ) =>
    pages.showAccount(request, async ({ signedIn, viewer, form, site }) => {
      try {
        return await work(signedIn, form);
      } catch (error) {
        return formError(error, (wrong) => <AccountPage {...{ site, viewer, ...shown(signedIn), wrong }} />);
      }
    });

  return new Elysia({ name: "account pages" })
    .get("/account", ({ request }) =>
      pages.showAccount(request, ({ signedIn, viewer, site }) => {
        const message = messages.get(new URL(request.url).searchParams.get("done") ?? "");
        return pageAnswer(<AccountPage {...{ site, viewer, ...shown(signedIn), done: message }} />);
      }),
    )
    .post("/account/name", ({ request }) =>
      change(request, (signedIn, form) => {
        renamePerson(ctx, signedIn, form.get("name") ?? "");
        return redirectAfter("name");
      }),
    )
    .post("/account/password", ({ request }) =>
      change(request, async (signedIn, form) => {
        const [current, next] = [form.get("currentPassword") ?? "", form.get("newPassword") ?? ""];
        return pages.withCookies(
          redirectAfter("password"),
          await changePassword(ctx, signedIn, current, next, fromOf(request)),
        );
      }),
    )
    .post("/account/end", ({ request }) =>
      change(request, (signedIn, form) => {
        endSignIn(ctx, signedIn, form.get("signIn") ?? undefined);
        return redirectAfter("ended");
      }),
    )
    .post("/account/organization", ({ request }) =>
      change(request, (signedIn, form) => {
        chooseOrg(ctx, signedIn, form.get("org") ?? "");
        return pages.seeOther("/");
      }),
    )
    .post("/account/leave", ({ request }) =>
      change(request, async (signedIn, form) => {
        const org = listMemberships(ctx, signedIn.person.id).find((each) => each.org === form.get("org"));
        if (!org) throw new AppError("not_found", "You are not a member of this organization.");
        const asks = askBefore(
          pages,
          { request, viewer: null, form },
          {
            title: `Leave ${org.orgName}?`,
            loses: ["You lose access immediately. Only an owner can invite you back."],
            act: "Leave organization",
            back: "/account",
          },
        );
        if (asks) return asks;
        await leaveOrg(ctx, org.org, signedIn, fromOf(request));
        return redirectAfter("left");
      }),
    )
    .post("/account/create-organization", ({ request }) =>
      change(request, async (signedIn, form) => {
        if (!ctx.config.people.canCreateOrgs)
          throw new AppError(
            "forbidden",
            "Only the operator of this server can create organizations (evald org create).",
          );
        const { id } = createOrgAsPerson(ctx, form.get("orgName") ?? "");
        await addOwner(ctx, id, signedIn);
        return pages.seeOther("/");
      }),
    );
};
