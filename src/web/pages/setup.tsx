import { TextField } from "../components/field.tsx";
import { Submit } from "../components/form-parts.tsx";
import type { Site } from "../site.ts";
import { AuthPage, passwordHint } from "./sign-in.tsx";

type Props = {
  site: Site;
  path: string;
  orgName: string;
  values?: { name: string; email: string };
  errorMessage?: string;
};

/** Creates the first owner of an organization. */
export const SetupPage = ({ site, path, orgName, values, errorMessage }: Props) => (
  <AuthPage
    {...{ site, path, errorMessage }}
    title={`Set up ${orgName}`}
    lead="You’ll be the owner of this organization. You can invite teammates next."
  >
    <form method="post" action={site.base + path}>
      <TextField name="name" label="Your name" autocomplete="name" value={values?.name} />
      <TextField name="email" label="Email" type="email" autocomplete="username" value={values?.email} />
      <TextField name="password" label="Password" type="password" autocomplete="new-password" hint={passwordHint} />
      <Submit>Create account</Submit>
    </form>
    <p class="aside">Already have an account on this server? Use its password.</p>
  </AuthPage>
);
