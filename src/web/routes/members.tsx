import { Elysia } from "elysia";
import type { Service } from "../../service.ts";
import { hidden } from "../describe.ts";
import { formError, pageAnswer } from "../page-answers.ts";
import type { Actor, PageRequests } from "../page-requests.tsx";
import { MembersPage } from "../pages/members.tsx";
import type { Viewer } from "../viewer.ts";
import { fromOf } from "../visitors.ts";

/** What the page says after each form, by the value of `done` in its URL. */
const messages = new Map(
  Object.entries({
    invited: "Invitation created. Share the link below.",
    mailed: "Invitation emailed.",
    unmailed: "Invitation created, but the email could not be sent (see the server log). Share the link below instead.",
    revoked: "Invitation revoked.",
    role: "Role updated.",
    removed: "Member removed.",
  }),
);

/** Members page and its forms. */
export const memberPages = ({ people }: Service, pages: PageRequests) => {
  const shown = (viewer: Viewer) => ({
    viewer,
    members: people.listMembers(viewer.org),
    invitations: people.listInvitations(viewer.org),
  });
  const redirectAfter = (done: string) => pages.seeOther(`/settings/members?done=${done}`);

  /** Runs `work` for a form of an owner. When it fails, the members page shows the error. */
  const change = (request: Request, work: (viewer: Actor, form: URLSearchParams) => Promise<Response | string>) =>
    pages.submit(request, "members", async (viewer, form, site) => {
      try {
        const result = await work(viewer, form);
        return typeof result === "string" ? redirectAfter(result) : result;
      } catch (error) {
        return formError(error, (wrong) => <MembersPage {...{ site, ...shown(viewer), wrong }} />);
      }
    });

  return new Elysia({ name: "member pages" })
    .get(
      "/settings/members",
      ({ request }) =>
        pages.show(request, (viewer, site) => {
          const message = messages.get(new URL(request.url).searchParams.get("done") ?? "");
          return pageAnswer(<MembersPage {...{ site, ...shown(viewer), done: message }} />);
        }),
      hidden,
    )
    .post(
      "/settings/members/invite",
      ({ request }) =>
        change(request, async ({ org, orgName, person }, form) => {
          const [email, role] = [form.get("email") ?? "", form.get("role") ?? ""];
          const made = await people.invite(org, email, role, fromOf(request));
          if (!people.sendsMail) return "invited";
          return (await people.mailInvitation(made.email, orgName, person.name, made.mailedPath))
            ? "mailed"
            : "unmailed";
        }),
      hidden,
    )
    .post(
      "/settings/members/revoke",
      ({ request }) =>
        change(request, async ({ org }, form) => {
          await people.revokeInvitation(org, form.get("invitation") ?? "", fromOf(request));
          return "revoked";
        }),
      hidden,
    )
    .post(
      "/settings/members/role",
      ({ request }) =>
        change(request, async ({ org }, form) => {
          await people.setRole(org, form.get("member") ?? "", form.get("role") ?? "", fromOf(request));
          return "role";
        }),
      hidden,
    )
    .post(
      "/settings/members/change",
      ({ request }) =>
        change(request, async (viewer, form) => {
          const member = form.get("member") ?? "";
          if (form.get("do") === "remove") {
            await people.removeMember(viewer.org, member, fromOf(request));
            return "removed";
          }
          const link = people.resetPathFor(viewer.org, member, viewer.person);
          return pageAnswer(<MembersPage {...{ site: pages.site(), ...shown(viewer), link }} />);
        }),
      hidden,
    );
};
