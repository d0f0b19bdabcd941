import type { Person } from "../../auth/person.ts";
import { PasswordField, TextField } from "../components/field.tsx";
import { Submit } from "../components/form-parts.tsx";
import type { Site } from "../site.ts";
import { AuthPage } from "./sign-in.tsx";

type Props = {
  site: Site;
  path: string;
  orgName: string;
  /** The signed-in person, if any. They don't need a new account. */
  person: Person | null;
  values?: { orgName: string; name: string; email: string };
  errorMessage?: string;
};

/** Creates the first owner of an organization, or makes the signed-in person the first owner. */
export const SetupPage = ({ site, path, orgName, person, values, errorMessage }: Props) => (
  <AuthPage
    {...{ site, path, errorMessage }}
    title={`Set up ${orgName}`}
    lead="You’ll be the owner of this organization. You can invite teammates next."
  >
    <form method="post" action={site.base + path}>
      {person ? (
        <p>You’re signed in as {person.email}.</p>
      ) : (
        <>
          <TextField
            name="orgName"
            label="Organization"
            autocomplete="organization"
            value={values?.orgName ?? orgName}
            hint="The name of your team or product. You can change it later."
          />
          <TextField name="name" label="Your name" autocomplete="name" value={values?.name} />
          <TextField name="email" label="Email" type="email" autocomplete="username" value={values?.email} />
          <PasswordField isNew />
        </>
      )}
      <Submit>{person ? `Become the owner of ${orgName}` : "Create account"}</Submit>
    </form>
    {!person && (
      <p class="aside">
        Already have an account on this server?{" "}
        <a href={`${site.base}/sign-in?next=${encodeURIComponent(path)}`}>Sign in</a> first, or enter the password of
        that account here.
      </p>
    )}
  </AuthPage>
);
