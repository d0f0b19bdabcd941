import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { invitePerson, listInvitations, revokeInvitation } from "../../auth/invitations.ts";
import { mailInvitation, sendsMail } from "../../auth/mail.ts";
import type { Member } from "../../auth/members.ts";
import { listMembers, removeMember, setRole } from "../../auth/members.ts";
import { toResetPathFor } from "../../auth/resets.ts";
import { roles } from "../../db/tables/people.ts";
import { columnOf, isDescending, sortBy, sorted } from "../../http/sorting.ts";
import type { Service } from "../../service.ts";
import { askBefore } from "../confirmation.tsx";
import { formError, pageAnswer } from "../page-answers.ts";
import type { Actor, PageRequests } from "../page-requests.tsx";
import { MembersPage } from "../pages/members.tsx";
import { withoutBlanks } from "../query.ts";
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

const memberColumns = ["name", "role", "joined", "active"] as const;
const toValue: Record<(typeof memberColumns)[number], (member: Member) => string | number | null> = {
  name: ({ name }) => name,
  role: ({ role }) => roles.indexOf(role),
  joined: ({ since }) => since,
  active: ({ lastUsedAt }) => lastUsedAt,
};

/** Members page and its forms. */
export const memberPages = ({ ctx }: Service, pages: PageRequests) => {
  const shown = (viewer: Viewer) => ({
    viewer,
    members: listMembers(ctx, viewer.org),
    invitations: listInvitations(ctx, viewer.org),
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
      ({ request, query }) =>
        pages.show(request, (viewer, site) => {
          const { sort } = query;
          const { members, ...others } = shown(viewer);
          const ordered = sort ? sorted(members, toValue[columnOf(sort)], isDescending(sort)) : members;
          const done = messages.get(query.done ?? "");
          return pageAnswer(<MembersPage {...{ site, ...others, members: ordered, sort, done }} />);
        }),
      {
        transform: withoutBlanks,
        query: Type.Object({ sort: sortBy(memberColumns), done: Type.Optional(Type.String()) }),
      },
    )
    .post("/settings/members/invite", ({ request }) =>
      change(request, async ({ org, orgName, person }, form) => {
        const [email, role] = [form.get("email") ?? "", form.get("role") ?? ""];
        const made = await invitePerson(ctx, org, email, role, fromOf(request));
        if (!sendsMail(ctx)) return "invited";
        return (await mailInvitation(ctx, made.email, orgName, person.name, made.mailedPath)) ? "mailed" : "unmailed";
      }),
    )
    .post("/settings/members/revoke", ({ request }) =>
      change(request, async (viewer, form) => {
        const { org } = viewer;
        const invitation = listInvitations(ctx, org).find(({ id }) => id === form.get("invitation"));
        const asks =
          invitation &&
          askBefore(
            pages,
            { request, viewer, form },
            {
              title: `Revoke the invitation for ${invitation.email}?`,
              loses: ["Its link stops working. You can invite them again later."],
              act: "Revoke invitation",
              back: "/settings/members",
            },
          );
        if (asks) return asks;
        await revokeInvitation(ctx, org, form.get("invitation") ?? "", fromOf(request));
        return "revoked";
      }),
    )
    .post("/settings/members/role", ({ request }) =>
      change(request, async ({ org }, form) => {
        await setRole(ctx, org, form.get("member") ?? "", form.get("role") ?? "", fromOf(request));
        return "role";
      }),
    )
    .post("/settings/members/change", ({ request }) =>
      change(request, async (viewer, form) => {
        const member = form.get("member") ?? "";
        if (form.get("do") === "remove") {
          const found = listMembers(ctx, viewer.org).find(({ memberId }) => memberId === member);
          const asks =
            found &&
            askBefore(
              pages,
              { request, viewer, form },
              {
                title: `Remove ${found.name} from ${viewer.orgName}?`,
                loses: [
                  `${found.email} loses access immediately. You can invite them again later.`,
                  "Prompts, runs, reports and API keys that they created are kept.",
                ],
                act: "Remove member",
                back: "/settings/members",
              },
            );
          if (asks) return asks;
          await removeMember(ctx, viewer.org, member, fromOf(request));
          return "removed";
        }
        const link = toResetPathFor(ctx, viewer.org, member, viewer.person);
        return pageAnswer(<MembersPage {...{ site: pages.site(request), ...shown(viewer), link }} />);
      }),
    );
};
