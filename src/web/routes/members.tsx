import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { invitePerson, listInvitations, revokeInvitation } from "../../auth/invitations.ts";
import { listKeys } from "../../auth/keys.ts";
import { mailInvitation, sendsMail } from "../../auth/mail.ts";
import { listMembers, type Member, refuseLastOwner, removeMember, setRole } from "../../auth/members.ts";
import { toResetPathByOwner } from "../../auth/resets.ts";
import type { Context } from "../../context.ts";
import { roles } from "../../db/tables/people.ts";
import { columnOf, isDescending, sortBy, sorted } from "../../http/sorting.ts";
import { type Actor, showPage, submitOrShowAgain } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { keyConsequences, requireConfirmation, revokesKeysField } from "../pages/confirm.tsx";
import { MembersPage } from "../pages/members.tsx";
import { queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { clientOf } from "../visitors.ts";

/** The messages that the page shows after each form, by the value of `done` in its URL. */
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
const sortValues: Record<(typeof memberColumns)[number], (member: Member) => string | number | null> = {
  name: ({ name }) => name,
  role: ({ role }) => roles.indexOf(role),
  joined: ({ since }) => since,
  active: ({ lastUsedAt }) => lastUsedAt,
};

type MembersPageProps = Partial<Parameters<typeof MembersPage>[0]>;

const membersPage = (ctx: Context, viewer: Viewer, site: Site, result: MembersPageProps = {}) => (
  <MembersPage
    {...{ site, viewer, members: listMembers(ctx, viewer.org), invitations: listInvitations(ctx, viewer.org) }}
    {...result}
  />
);

/** Handles a form of an owner, and then shows a message, which is a key of `messages`. */
const submitMembers = (
  ctx: Context,
  request: Request,
  handle: (viewer: Actor, form: URLSearchParams) => Promise<string>,
) =>
  submitOrShowAgain(ctx, request, "members", membersPage, async (viewer, form) =>
    seeOther(ctx, `/settings/members?done=${await handle(viewer, form)}`),
  );

/** Members page and its forms. */
export const memberPages = (ctx: Context) =>
  new Elysia({ name: "member pages" })
    .get(
      "/settings/members",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const { sort } = query;
          const members = listMembers(ctx, viewer.org);
          const sortedMembers = sort ? sorted(members, sortValues[columnOf(sort)], isDescending(sort)) : members;
          return membersPage(ctx, viewer, site, {
            members: sortedMembers,
            sort,
            successMessage: messages.get(query.done ?? ""),
          });
        }),
      queryOptions({ sort: sortBy(memberColumns), done: Type.Optional(Type.String()) }),
    )
    .post("/settings/members/invite", ({ request }) =>
      submitMembers(ctx, request, async ({ org, orgName, person }, form) => {
        const [email, role] = [form.get("email") ?? "", form.get("role") ?? ""];
        const invitation = await invitePerson(ctx, org, email, role, clientOf(request));
        if (!sendsMail(ctx)) return "invited";
        return (await mailInvitation(ctx, invitation.email, {
          orgName,
          inviter: person.name,
          path: invitation.mailedPath,
        }))
          ? "mailed"
          : "unmailed";
      }),
    )
    .post("/settings/members/revoke", ({ request }) =>
      submitMembers(ctx, request, async (viewer, form) => {
        const invitation = listInvitations(ctx, viewer.org).find(({ id }) => id === form.get("invitation"));
        if (invitation)
          requireConfirmation(form, {
            title: `Revoke the invitation for ${invitation.email}?`,
            consequences: ["Its link stops working. You can invite them again later."],
            buttonText: "Revoke invitation",
            back: "/settings/members",
          });
        await revokeInvitation(ctx, viewer.org, form.get("invitation") ?? "", clientOf(request));
        return "revoked";
      }),
    )
    .post("/settings/members/role", ({ request }) =>
      submitMembers(ctx, request, async ({ org }, form) => {
        await setRole(ctx, org, form.get("member") ?? "", form.get("role") ?? "", clientOf(request));
        return "role";
      }),
    )
    .post("/settings/members/change", ({ request }) =>
      submitOrShowAgain(ctx, request, "members", membersPage, async (viewer, form, site) => {
        const memberId = form.get("member") ?? "";
        // The other button in the row resets the password.
        if (form.get("do") !== "remove")
          return membersPage(ctx, viewer, site, { link: toResetPathByOwner(ctx, viewer.org, memberId, viewer.person) });
        const member = listMembers(ctx, viewer.org).find((each) => each.memberId === memberId);
        if (member) {
          refuseLastOwner(ctx, viewer.org, member);
          requireConfirmation(form, {
            title: `Remove ${member.name} from ${viewer.orgName}?`,
            consequences: [
              `${member.email} loses access immediately. You can invite them again later.`,
              "Prompts, runs and reports that they created are kept.",
            ],
            ...keyConsequences(listKeys(ctx, viewer.org, { createdBy: member.id, isActive: true })),
            buttonText: "Remove member",
            back: "/settings/members",
          });
        }
        await removeMember(ctx, viewer.org, memberId, clientOf(request), { revokesKeys: form.has(revokesKeysField) });
        return seeOther(ctx, "/settings/members?done=removed");
      }),
    );
