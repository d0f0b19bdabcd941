import type { Person } from "../../auth/person.ts";
import type { Requirement } from "../../auth/sign-in-policy.ts";
import { ButtonForm } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import type { Barred } from "../visitors.ts";

type Props = Barred & {
  site: Site;
  person: Person;
  /** Name of the identity provider; null: none is configured. */
  ssoName: string | null;
};

/** Tells a member what to do before they can see an organization. It replaces every page of the organization. */
export const BarredPage = ({ orgName, unmet, others, ...props }: Props) => (
  <Layout site={props.site} isSignedIn path="/" title={`Sign-in policy of ${orgName}`}>
    <div class="notice-page" data-error="sign_in_policy">
      <h1>{orgName} requires more to sign in</h1>
      {unmet.map((requirement) => (
        <Remedy key={requirement} {...{ ...props, requirement }} />
      ))}
      <div class="actions">
        {others.map(({ id, name }) => (
          <ButtonForm key={id} action={`${props.site.base}/account/organization`} name="org" value={id}>
            Switch to {name}
          </ButtonForm>
        ))}
        <ButtonForm action={`${props.site.base}/sign-out`}>Sign out</ButtonForm>
      </div>
    </div>
  </Layout>
);

type RemedyProps = Omit<Props, "orgName" | "unmet" | "others"> & { requirement: Requirement };

function Remedy({ requirement, site, person, policy, ssoName }: RemedyProps) {
  if (requirement === "email_domain")
    return (
      <p>
        Members need an email address of {policy.emailDomains.join(", ")}. You’re signed in as {person.email}. Ask an
        owner to invite your other address.
      </p>
    );
  if (requirement === "sso")
    return ssoName === null ? (
      <p>
        Members must use single sign-on, but this server has no identity provider any more. Ask its operator to run{" "}
        <code>evald org reset-sign-in-policy</code>.
      </p>
    ) : (
      <>
        <p>Members must sign in with {ssoName}.</p>
        <p>
          <a class="button main" href={`${site.base}/sign-in/oidc`}>
            Continue with {ssoName}
          </a>
        </p>
      </>
    );
  return (
    <>
      <p>
        Members must sign in with a second factor. Turn on two-factor sign-in or add a passkey. If you have one already,
        sign out and use it to sign in.
      </p>
      <p>
        <a class="button main" href={`${site.base}/account#two-factor`}>
          Set up a second factor
        </a>
      </p>
    </>
  );
}
