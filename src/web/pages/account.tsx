import type { SignIn } from "../../auth/account.ts";
import type { Membership, Person } from "../../auth/people.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { timeWords } from "../words.ts";
import { Wide } from "./figures.tsx";
import { Field, passwordHint } from "./signin.tsx";

type Props = {
  site: Site;
  viewer: Viewer | null;
  person: Person;
  hasPassword: boolean;
  signIns: SignIn[];
  memberships: Membership[];
  /** Whether people may make organisations of their own. */
  mayFound: boolean;
  done?: string;
  wrong?: string;
};

/** What a person has and changes themselves. */
export function AccountPage(props: Props) {
  const { site, viewer, person, hasPassword, signIns, memberships, mayFound, done, wrong } = props;
  const to = (path: string) => `${site.base}/account/${path}`;
  return (
    <Layout site={site} viewer={viewer ?? undefined} path="/account" title="Account">
      <div class="toolbar">
        <h1>Account</h1>
      </div>
      {done && (
        <p class="notice good" role="status">
          {done}
        </p>
      )}
      {wrong && (
        <p class="notice bad" role="alert">
          {wrong}
        </p>
      )}
      <div class="narrow">
        <form method="post" action={to("name")}>
          <Field name="name" label="Name" autocomplete="name" value={person.name} />
          <p class="aside">You sign in as {person.email}.</p>
          <button type="submit">Save the name</button>
        </form>
        {hasPassword && (
          <form method="post" action={to("password")}>
            <h2>Password</h2>
            <Field name="present" label="Present password" type="password" autocomplete="current-password" />
            <Field name="next" label="New password" type="password" autocomplete="new-password" hint={passwordHint} />
            <button type="submit">Change the password</button>
          </form>
        )}
      </div>
      <SignIns {...{ to, signIns }} />
      <section>
        <h2>Organisations</h2>
        {memberships.length === 0 && <p>You are in no organisation. An owner of one can invite you.</p>}
        <ul class="rows">
          {memberships.map(({ org, orgName, role }) => (
            <li key={org}>
              <span>
                <strong>{orgName}</strong> <span class="aside">{role}</span>
              </span>
              <form method="post" action={to("leave")}>
                <button type="submit" name="org" value={org} aria-label={`Leave ${orgName}`}>
                  Leave
                </button>
              </form>
            </li>
          ))}
        </ul>
        {mayFound && (
          <form class="narrow" method="post" action={to("found")}>
            <Field name="orgName" label="Name of a new organisation" autocomplete="off" />
            <button type="submit">Make an organisation</button>
          </form>
        )}
      </section>
    </Layout>
  );
}

const SignIns = ({ to, signIns }: { to: (path: string) => string; signIns: SignIn[] }) => (
  <section>
    <h2>Where you are signed in</h2>
    <Wide label="Where you are signed in">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Browser</th>
            <th scope="col">Address</th>
            <th scope="col">Since</th>
            <th scope="col">Last use</th>
            <th scope="col">
              <span class="unseen">Change</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {signIns.map(({ id, userAgent, address, since, lastUsedAt, isThis }) => (
            <tr key={id}>
              <td title={userAgent}>{browserWords(userAgent)}</td>
              <td>{address}</td>
              <td class="when">{timeWords(since)}</td>
              <td class="when">{timeWords(lastUsedAt)}</td>
              <td>
                {isThis ? (
                  "this one"
                ) : (
                  <form method="post" action={to("end")}>
                    <button type="submit" name="signIn" value={id}>
                      Sign out there
                    </button>
                  </form>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
    {signIns.length > 1 && (
      <form method="post" action={to("end")}>
        <button type="submit">Sign out everywhere else</button>
      </form>
    )}
  </section>
);

const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari", "curl"];
const systems = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"];
const names: Record<string, string> = { Edg: "Edge", OPR: "Opera", "Mac OS X": "macOS" };

/** A browser and its system, as far as they tell: `Firefox on Linux`. */
function browserWords(userAgent: string): string {
  const [browser, system] = [browsers, systems].map((all) => {
    const found = all.find((each) => userAgent.includes(each));
    return found && (names[found] ?? found);
  });
  return [browser ?? "Unknown browser", system].filter(Boolean).join(" on ");
}
