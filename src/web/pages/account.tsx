import type { SignIn } from "../../auth/account.ts";
import type { ReceivedInvitation } from "../../auth/invitations.ts";
import type { Passkey } from "../../auth/passkeys.ts";
import type { Membership, Person } from "../../auth/person.ts";
import type { TwoFactor } from "../../auth/two-factor.ts";
import { capitalize } from "../../grading/text.ts";
import { PasswordField, TextField } from "../components/field.tsx";
import { List } from "../components/figures.tsx";
import { ButtonForm, DangerButton, Notices } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { Time } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { PasskeySection, TwoFactorSection } from "./second-factors.tsx";

type Props = {
  site: Site;
  viewer: Viewer | null;
  person: Person;
  hasPassword: boolean;
  signIns: SignIn[];
  /** `isLastOwner`: whether the person is the last owner, who can't leave. */
  memberships: (Membership & { isLastOwner: boolean })[];
  invitations: ReceivedInvitation[];
  mayCreateOrgs: boolean;
  twoFactor: TwoFactor;
  /** null if browsers don't allow passkeys at the URL of this service. */
  passkeys: Passkey[] | null;
  /** Deleted organizations of the person that can still be restored. */
  deletedOrgs: { id: string; title: string | null; erasesAt: string }[];
  sendsMail: boolean;
  successMessage?: string;
  errorMessage?: string;
};

/** Account page: name, password, active sessions and organizations. */
export function AccountPage(props: Props) {
  const { site, viewer, person, hasPassword, memberships, invitations, mayCreateOrgs } = props;
  const to = (path: string) => `${site.base}/account/${path}`;
  return (
    <Layout site={site} viewer={viewer ?? undefined} isSignedIn path="/account" title="Account">
      <div class="toolbar">
        <h1>Account</h1>
        {!viewer && (
          <form class="end" method="post" action={`${site.base}/sign-out`}>
            <button type="submit">Sign out</button>
          </form>
        )}
      </div>
      <Notices successMessage={props.successMessage} errorMessage={props.errorMessage} />
      {memberships.length === 0 && invitations.length === 0 && (
        <p class="notice">You’re not a member of any organization yet. Ask an owner to invite {person.email}.</p>
      )}
      {invitations.length > 0 && <Invitations {...props} />}
      <div class="narrow">
        <form method="post" action={to("name")}>
          <TextField name="name" label="Name" autocomplete="name" value={person.name} />
          <p class="aside">You sign in with {person.email}.</p>
          <button type="submit">Save name</button>
        </form>
        {props.sendsMail && (
          <form method="post" action={to("email")}>
            <h2>Email address</h2>
            <TextField
              name="email"
              label="New email address"
              type="email"
              autocomplete="email"
              hint="We email a link to the new address. It changes once you open the link."
            />
            <button type="submit">Change email address</button>
          </form>
        )}
        {hasPassword && (
          <form method="post" action={to("password")}>
            <h2>Password</h2>
            <PasswordField name="currentPassword" label="Current password" />
            <PasswordField name="newPassword" label="New password" isNew />
            <button type="submit">Change password</button>
          </form>
        )}
      </div>
      <TwoFactorSection {...{ to, hasPassword }} twoFactor={props.twoFactor} />
      <PasskeySection {...{ to, hasPassword }} passkeys={props.passkeys} />
      <SignIns to={to} signIns={props.signIns} />
      {(memberships.length > 0 || mayCreateOrgs) && (
        <section>
          <h2>Organizations</h2>
          <ul class="rows">
            {memberships.map(({ org, orgName, role, isLastOwner }) => (
              <li key={org}>
                <span>
                  <strong>{orgName}</strong> <span class="aside">{capitalize(role)}</span>
                </span>
                {isLastOwner ? (
                  <span class="aside">You’re the only owner. To leave, make another member an owner first.</span>
                ) : (
                  <ButtonForm action={to("leave")} name="org" value={org} label={`Leave ${orgName}`}>
                    Leave
                  </ButtonForm>
                )}
              </li>
            ))}
          </ul>
          {mayCreateOrgs && (
            <form class="narrow" method="post" action={to("create-organization")}>
              <TextField name="orgName" label="Organization name" autocomplete="off" />
              <button type="submit">Create organization</button>
            </form>
          )}
        </section>
      )}
      {props.deletedOrgs.length > 0 && (
        <section>
          <h2>Deleted organizations</h2>
          <ul class="rows">
            {props.deletedOrgs.map(({ id, title, erasesAt }) => (
              <li key={id}>
                <span>
                  <strong>{title}</strong>{" "}
                  <span class="aside">
                    Erased <Time at={erasesAt} />
                  </span>
                </span>
                <ButtonForm action={to("restore")} name="deletion" value={id} label={`Restore ${title}`}>
                  Restore
                </ButtonForm>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h2>Your data</h2>
        <p>
          <a href={to("data.json")} download>
            Download your data
          </a>
          <span class="muted block">
            Account, sessions, memberships, API keys and your entries of audit logs, as JSON.
          </span>
        </p>
        <DangerButton action={to("delete")}>Delete account</DangerButton>
      </section>
    </Layout>
  );
}

const Invitations = ({ site: { base }, invitations }: Props) => (
  <section>
    <h2>Invitations</h2>
    <ul class="rows">
      {invitations.map(({ orgName, role, path }) => (
        <li key={path}>
          <span>
            <strong>{orgName}</strong> <span class="aside">{capitalize(role)}</span>
          </span>
          <a class="button main" href={base + path}>
            View invitation
          </a>
        </li>
      ))}
    </ul>
  </section>
);

const SignIns = ({ to, signIns }: { to: (path: string) => string; signIns: SignIn[] }) => (
  <section>
    <h2>Active sessions</h2>
    <List
      isStacked
      label="Active sessions"
      labels={["Browser", "IP address", "Signed in with", "Signed in", "Last used", "Actions"]}
    >
      {signIns.map(({ id, userAgent, address, method, since, lastUsedAt, isCurrent }) => (
        <tr key={id}>
          <td class="title" title={userAgent}>
            {browserName(userAgent)}
          </td>
          <td data-label="IP address">{address}</td>
          <td data-label="Signed in with">{methodNames[method]}</td>
          <td class="when" data-label="Signed in">
            <Time at={since} />
          </td>
          <td class="when" data-label="Last used">
            <Time at={lastUsedAt} />
          </td>
          <td>
            {isCurrent ? (
              "This device"
            ) : (
              <ButtonForm action={to("end")} name="signIn" value={id}>
                Sign out
              </ButtonForm>
            )}
          </td>
        </tr>
      ))}
    </List>
    {signIns.length > 1 && <ButtonForm action={to("end")}>Sign out all other sessions</ButtonForm>}
  </section>
);

const methodNames: Record<SignIn["method"], string> = {
  password: "Password",
  password_and_code: "Password and code",
  passkey: "Passkey",
  sso: "Single sign-on",
};

/**
 * Browsers and systems as user agents name them, and the names to show if they differ. The order matters, because Edge also names Chrome, and Chrome
 * also names Safari.
 */
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari", "curl"];
const systems = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"];
const shownNames: Record<string, string> = { Edg: "Edge", OPR: "Opera", "Mac OS X": "macOS" };

/** The browser and operating system of a user agent: `Firefox on Linux`. */
function browserName(userAgent: string): string {
  const [browser, system] = [browsers, systems].map((tokens) => {
    const token = tokens.find((each) => userAgent.includes(each));
    return token && (shownNames[token] ?? token);
  });
  return [browser ?? "Unknown browser", system].filter(Boolean).join(" on ");
}
