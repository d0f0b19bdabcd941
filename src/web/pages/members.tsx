import type { Invitation } from "../../auth/invitations.ts";
import type { Member } from "../../auth/members.ts";
import { roles } from "../../db/tables/people.ts";
import { capitalize } from "../../grading/text.ts";
import { TextField } from "../components/field.tsx";
import { Fact, List, toSorting } from "../components/figures.tsx";
import { DangerButton, Submit } from "../components/form-parts.tsx";
import { Day, Time } from "../components/when.tsx";
import type { Site } from "../site.ts";
import { may, type PageProps, type Role } from "../viewer.ts";
import { SettingsFrame } from "./settings.tsx";

type Props = PageProps & {
  members: Member[];
  sort?: string;
  invitations: Invitation[];
  /** A password reset link that was just created. It is shown only once. */
  link?: { email: string; path: string };
  successMessage?: string;
  errorMessage?: string;
};

const roleDescriptions: Record<Role, string> = {
  owner:
    "Everything an admin can do, and manage members, organization settings, limits, budgets, workers and share links.",
  admin:
    "Everything a member can do, and archive prompts, publish and archive reports, and manage providers, API keys and models.",
  member: "View everything, create, edit and run prompts, and mark recommended fixes as done.",
  viewer: "View everything. Can’t make changes or create API keys.",
};

/** Members and invitations of an organization. Only owners can change them. */
export function MembersPage({ site, viewer, members, sort, invitations, link, successMessage, errorMessage }: Props) {
  const to = (path: string) => `${site.base}/settings/members/${path}`;
  const isOwner = may(viewer, "members");
  const owners = members.filter(({ role }) => role === "owner");
  // The last owner of an organization can't be removed.
  const lastOwner = owners.length === 1 ? owners[0] : undefined;
  return (
    <SettingsFrame {...{ site, viewer, successMessage, errorMessage }} path="/settings/members">
      {link && (
        <section class="reset-link" aria-label="Password reset link">
          <p>
            This link resets the password of <strong>{link.email}</strong>. It works once and expires in 24 hours. Don’t
            share it with anyone else.
          </p>
          <CopyableLink text={site.baseUrl + link.path} />
        </section>
      )}
      <List
        label="Members"
        isStacked
        labels={[
          { label: "Name", sort: "name" },
          { label: "Role", sort: "role" },
          { label: "Joined", sort: "joined", largestFirst: true },
          { label: "Last active", sort: "active", largestFirst: true },
          ...(isOwner ? ["Actions"] : []),
        ]}
        sorting={toSorting(`${site.base}/settings/members`, { sort }, "role")}
      >
        {members.map((member) => (
          <tr key={member.memberId}>
            <td class="title">
              <strong>{member.name}</strong>
              {/* API keys can also read pages, but don't need the addresses. */}
              {viewer.person && <span class="aside block">{member.email}</span>}
            </td>
            <td data-label="Role">{isOwner ? <RoleForm {...{ to, member }} /> : capitalize(member.role)}</td>
            <td class="when" data-label="Joined">
              <Day at={member.since} />
            </td>
            <td class="when" data-label="Last active">
              {member.lastUsedAt ? <Time at={member.lastUsedAt} /> : "Never"}
            </td>
            {isOwner && (
              <td>
                <form class="inline" method="post" action={to("change")}>
                  <input type="hidden" name="member" value={member.memberId} />
                  <button type="submit" name="do" value="reset" aria-label={`Reset password of ${member.name}`}>
                    Reset password
                  </button>
                  {member !== lastOwner && (
                    <button type="submit" class="bad" name="do" value="remove" aria-label={`Remove ${member.name}`}>
                      Remove
                    </button>
                  )}
                </form>
              </td>
            )}
          </tr>
        ))}
      </List>
      {isOwner ? <Invitations {...{ site, to, invitations }} /> : <p class="aside">Only owners can invite members.</p>}
      <section>
        <h2>Role permissions</h2>
        <dl class="facts">
          {roles.map((role) => (
            <Fact key={role} name={capitalize(role)}>
              {roleDescriptions[role]}
            </Fact>
          ))}
        </dl>
      </section>
    </SettingsFrame>
  );
}

const RoleForm = ({ to, member }: { to: (path: string) => string; member: Member }) => (
  <form class="inline" method="post" action={to("role")}>
    <input type="hidden" name="member" value={member.memberId} />
    <RoleSelect label={`Role of ${member.name}`} selected={member.role} />
    <button type="submit">Change role</button>
  </form>
);

const RoleSelect = ({ id, label, selected }: { id?: string; label?: string; selected: Role }) => (
  <select id={id} name="role" aria-label={label}>
    {roles.map((role) => (
      <option key={role} value={role} selected={role === selected}>
        {capitalize(role)}
      </option>
    ))}
  </select>
);

type InvitationsProps = { site: Site; to: (path: string) => string; invitations: Invitation[] };

const Invitations = ({ site, to, invitations }: InvitationsProps) => (
  <>
    <section>
      <h2 id="invite">Invite a member</h2>
      <form class="narrow" method="post" action={to("invite")}>
        <TextField name="email" label="Email" type="email" autocomplete="off" />
        <div class="field">
          <label for="invited-role">Role</label>
          <RoleSelect id="invited-role" selected="member" />
        </div>
        <Submit>Invite member</Submit>
      </form>
    </section>
    {invitations.length > 0 && (
      <section>
        <h2>Pending invitations</h2>
        <ul class="rows">
          {invitations.map(({ id, email, role, invitedBy, expiresAt, isExpired, path }) => (
            <li key={id}>
              <div>
                <strong>{email}</strong>{" "}
                <span class="aside block">
                  {capitalize(role)}, invited by {invitedBy}, {isExpired ? "expired" : "expires"}{" "}
                  <Time at={expiresAt} />
                </span>
                {!isExpired && <CopyableLink text={site.baseUrl + path} />}
              </div>
              <DangerButton action={to("revoke")} name="invitation" value={id} label={`Revoke invitation of ${email}`}>
                Revoke
              </DangerButton>
            </li>
          ))}
        </ul>
      </section>
    )}
  </>
);

const CopyableLink = ({ text }: { text: string }) => (
  <p class="copy">
    <code>{text}</code>
    <button type="button" data-copy={text}>
      Copy link
    </button>
  </p>
);
