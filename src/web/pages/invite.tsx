import type { InvitationDetails } from "../../auth/invitations.ts";
import type { Person } from "../../auth/person.ts";
import { PasswordField, TextField } from "../components/field.tsx";
import { Submit } from "../components/form-parts.tsx";
import type { Site } from "../site.ts";
import { withArticle } from "../viewer.ts";
import { AuthPage } from "./sign-in.tsx";

type InviteProps = {
  site: Site;
  path: string;
  invitation: InvitationDetails;
  /** The person who is signed in, if any. */
  person: Person | null;
  name?: string;
  errorMessage?: string;
  ssoName: string | null;
};

/** Accepts an invitation: with a new account, an existing account, or while signed in. */
export function InvitePage({ site, path, invitation, person, name, errorMessage, ssoName }: InviteProps) {
  const { orgName, invitedBy, email, role, hasAccount, requiresSso } = invitation;
  const isOtherPerson = person !== null && person.email !== email;
  return (
    <AuthPage
      {...{ site, path, errorMessage }}
      title={`Join ${orgName}`}
      lead={`${invitedBy} invited you to ${orgName} as ${withArticle(role)}.`}
    >
      {isOtherPerson ? (
        <form method="post" action={`${site.base}/sign-out`}>
          <input type="hidden" name="next" value={path} />
          <p>
            You’re signed in as {person.email}. Sign out to accept this invitation as {email}.
          </p>
          <Submit>Sign out</Submit>
        </form>
      ) : (
        <form method="post" action={site.base + path}>
          {!person && ssoName !== null && (
            <p>
              <a class="button" href={`${site.base}/sign-in/oidc?next=${encodeURIComponent(path)}`}>
                Continue with {ssoName}
              </a>
            </p>
          )}
          {!person && !requiresSso && (
            <>
              {!hasAccount && <TextField name="name" label="Your name" autocomplete="name" value={name} />}
              <TextField name="email" label="Email" type="email" autocomplete="username" value={email} readonly />
              {hasAccount ? <PasswordField label="Password of your existing account" /> : <PasswordField isNew />}
            </>
          )}
          {(person || !requiresSso) && <Submit>Join {orgName}</Submit>}
        </form>
      )}
    </AuthPage>
  );
}

type ResetProps = { site: Site; path: string; person: Person; errorMessage?: string };

/** Sets a new password. */
export const ResetPage = ({ site, path, person, errorMessage }: ResetProps) => (
  <AuthPage
    {...{ site, path, errorMessage }}
    title="Reset password"
    lead={`For ${person.email}. All other sessions will be signed out.`}
  >
    <form method="post" action={site.base + path}>
      <input type="hidden" name="email" value={person.email} autocomplete="username" />
      <PasswordField label="New password" isNew />
      <Submit>Set password</Submit>
    </form>
  </AuthPage>
);
