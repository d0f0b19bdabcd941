import { Elysia } from "elysia";
import type { Service } from "../../service.ts";
import { hidden } from "../describe.ts";
import { type Actor, type Front, fromOf } from "../front.tsx";
import { MembersPage } from "../pages/members.tsx";
import type { Viewer } from "../viewer.ts";
import { againWith, html } from "./people.tsx";

const done = new Map(
  Object.entries({
    invited: "The invitation is made. Give its link to the person: it stands below.",
    mailed: "The invitation is made, and a mail with its link is on its way.",
    unmailed:
      "The invitation is made, but the mail could not be sent: the log says why. Give the link to the person yourself.",
    revoked: "The invitation is revoked.",
    role: "The role is changed.",
    removed: "The person is no member any more.",
  }),
);

/** Who belongs to an organisation. */
export const memberPages = ({ people }: Service, front: Front) => {
  const shown = (viewer: Viewer) => ({
    viewer,
    members: people.listMembers(viewer.org),
    invitations: people.listInvitations(viewer.org),
  });
  const to = (told: string) => front.seeOther(`/settings/members?told=${told}`);

  /** Does what an owner asks for; what is refused is said on the page. */
  const change = (request: Request, work: (viewer: Actor, form: URLSearchParams) => Promise<Response | string>) =>
    front.act(request, "members", async (viewer, form, site) => {
      try {
        const did = await work(viewer, form);
        return typeof did === "string" ? to(did) : did;
      } catch (error) {
        return againWith(error, (wrong) => <MembersPage {...{ site, ...shown(viewer), wrong }} />);
      }
    });

  return new Elysia({ name: "member pages" })
    .get(
      "/settings/members",
      ({ request }) =>
        front.show(request, (viewer, site) => {
          const told = new URL(request.url).searchParams.get("told") ?? "";
          return html(<MembersPage {...{ site, ...shown(viewer), done: done.get(told) }} />);
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
          return (await people.mailInvitation(made.email, orgName, person.name, made.path)) ? "mailed" : "unmailed";
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
          return html(<MembersPage {...{ site: front.site(), ...shown(viewer), link }} />);
        }),
      hidden,
    );
};
