import type { Invitation, Member } from "../../auth/members.ts";
import { roles } from "../../db/tables.ts";
import type { Site } from "../site.ts";
import { may, type Role, type Viewer } from "../viewer.ts";
import { timeWords } from "../words.ts";
import { Wide } from "./figures.tsx";
import { SettingsFrame } from "./settings.tsx";
import { Field } from "./signin.tsx";

type Props = {
  site: Site;
  viewer: Viewer;
  members: Member[];
  invitations: Invitation[];
  /** A link that was made now and is shown once: for whom, and where it leads. */
  link?: { email: string; path: string };
  done?: string;
  wrong?: string;
};

const roleWords: Record<Role, string> = {
  owner: "also members, the organisation and its limits, and share links",
  admin: "also archives prompts, publishes and archives reports, and keeps providers, API keys and models",
  member: "reads everything, writes prompts, runs them, and marks recommendations done",
};

/** Who is in the organisation, and who was asked. Owners change it. */
export function MembersPage({ site, viewer, members, invitations, link, done, wrong }: Props) {
  const to = (path: string) => `${site.base}/settings/members/${path}`;
  const isOwner = may(viewer, "members");
  return (
    <SettingsFrame {...{ site, viewer, done, wrong }} path="/settings/members">
      {link && (
        <section class="given" aria-label="A new password">
          <p>
            This link sets a new password for <strong>{link.email}</strong>, once, within a day. Give it to nobody else.
          </p>
          <Copy text={site.baseUrl + link.path} />
        </section>
      )}
      <Wide label="Members">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Role</th>
              <th scope="col">Since</th>
              <th scope="col">Last use</th>
              {isOwner && (
                <th scope="col">
                  <span class="unseen">Change</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <tr key={member.memberId}>
                <td>
                  <strong>{member.name}</strong>
                  <span class="aside block">{member.email}</span>
                </td>
                <td>{isOwner ? <RoleForm {...{ to, member }} /> : member.role}</td>
                <td class="when">{member.since.slice(0, 10)}</td>
                <td class="when">{member.lastUsedAt ? timeWords(member.lastUsedAt) : "not signed in"}</td>
                {isOwner && (
                  <td>
                    <form class="inline" method="post" action={to("change")}>
                      <input type="hidden" name="member" value={member.memberId} />
                      <button type="submit" name="do" value="reset" aria-label={`New password for ${member.name}`}>
                        New password
                      </button>
                      <button type="submit" class="bad" name="do" value="remove" aria-label={`Remove ${member.name}`}>
                        Remove
                      </button>
                    </form>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {isOwner ? <Invitations {...{ site, to, invitations }} /> : <p class="aside">Owners invite others.</p>}
      <section>
        <h2>What each role may do</h2>
        <dl class="facts">
          {roles.map((role) => (
            <div key={role}>
              <dt>{role}</dt>
              <dd>{roleWords[role]}</dd>
            </div>
          ))}
        </dl>
      </section>
    </SettingsFrame>
  );
}

const RoleForm = ({ to, member }: { to: (path: string) => string; member: Member }) => (
  <form class="inline" method="post" action={to("role")}>
    <input type="hidden" name="member" value={member.memberId} />
    <RoleSelect label={`Role of ${member.name}`} chosen={member.role} />
    <button type="submit">Change</button>
  </form>
);

const RoleSelect = ({ id, label, chosen }: { id?: string; label?: string; chosen: Role }) => (
  <select id={id} name="role" aria-label={label}>
    {roles.map((role) => (
      <option key={role} value={role} selected={role === chosen}>
        {role}
      </option>
    ))}
  </select>
);

type InvitationsProps = { site: Site; to: (path: string) => string; invitations: Invitation[] };

const Invitations = ({ site, to, invitations }: InvitationsProps) => (
  <>
    <section>
      <h2>Invite somebody</h2>
      <form class="narrow" method="post" action={to("invite")}>
        <Field name="email" label="Address of mail" type="email" autocomplete="off" />
        <div class="field">
          <label for="invited-role">Role</label>
          <RoleSelect id="invited-role" chosen="member" />
        </div>
        <button class="main" type="submit">
          Invite
        </button>
      </form>
    </section>
    {invitations.length > 0 && (
      <section>
        <h2>Invitations that wait</h2>
        <ul class="rows">
          {invitations.map(({ id, email, role, invitedBy, expiresAt, isExpired, path }) => (
            <li key={id}>
              <div>
                <strong>{email}</strong>{" "}
                <span class="aside block">
                  {role}, invited by {invitedBy}, {isExpired ? "too old since" : "good until"} {timeWords(expiresAt)}
                </span>
                {!isExpired && <Copy text={site.baseUrl + path} />}
              </div>
              <form method="post" action={to("revoke")}>
                <button
                  type="submit"
                  class="bad"
                  name="invitation"
                  value={id}
                  aria-label={`Revoke the invitation of ${email}`}
                >
                  Revoke
                </button>
              </form>
            </li>
          ))}
        </ul>
      </section>
    )}
  </>
);

const Copy = ({ text }: { text: string }) => (
  <p class="copy">
    <code>{text}</code>
    <button type="button" data-copy={text}>
      Copy link
    </button>
  </p>
);
