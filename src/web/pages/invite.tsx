import type { Invited } from "../../auth/members.ts";
import type { Person } from "../../auth/people.ts";
import type { Site } from "../site.ts";
import { DoorPage, Field, passwordHint } from "./signin.tsx";

type InviteProps = {
  site: Site;
  path: string;
  invited: Invited;
  /** Who is signed in here already. */
  person: Person | null;
  name?: string;
  wrong?: string;
  ssoName: string | null;
};

/** Takes an invitation up: with a new account, with the one that the person has, or signed in already. */
export function InvitePage({ site, path, invited, person, name, wrong, ssoName }: InviteProps) {
  const { orgName, email, role, isKnown } = invited;
  const isOther = person !== null && person.email !== email;
  return (
    <DoorPage
      {...{ site, path, wrong }}
      title={`Join ${orgName}`}
      lead={`You were invited as ${role === "member" ? "a" : "an"} ${role}, with the address ${email}.`}
    >
      {isOther ? (
        <form method="post" action={`${site.base}/sign-out`}>
          <input type="hidden" name="next" value={path} />
          <p>You are signed in as {person.email}. Sign out to take it up with that address.</p>
          <button class="main" type="submit">
            Sign out
          </button>
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
          {!person && (
            <>
              {!isKnown && <Field name="name" label="Your name" autocomplete="name" value={name} />}
              <Field name="email" label="Address of mail" type="email" autocomplete="username" value={email} readonly />
              {isKnown ? (
                <Field
                  name="password"
                  label="The password that you have here"
                  type="password"
                  autocomplete="current-password"
                />
              ) : (
                <Field
                  name="password"
                  label="Password"
                  type="password"
                  autocomplete="new-password"
                  hint={passwordHint}
                />
              )}
            </>
          )}
          <button class="main" type="submit">
            Join {orgName}
          </button>
        </form>
      )}
    </DoorPage>
  );
}

type ResetProps = { site: Site; path: string; person: Person; wrong?: string };

/** Sets a new password. */
export const ResetPage = ({ site, path, person, wrong }: ResetProps) => (
  <DoorPage
    {...{ site, path, wrong }}
    title="New password"
    lead={`For ${person.email}. You will be signed out everywhere else.`}
  >
    <form method="post" action={site.base + path}>
      <input type="hidden" name="email" value={person.email} autocomplete="username" />
      <Field name="password" label="New password" type="password" autocomplete="new-password" hint={passwordHint} />
      <button class="main" type="submit">
        Set the password
      </button>
    </form>
  </DoorPage>
);
