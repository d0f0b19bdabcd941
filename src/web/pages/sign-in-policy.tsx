import { Type } from "@sinclair/typebox";
import type { SignInPolicy } from "../../db/tables/orgs.ts";
import { Submit } from "../components/form-parts.tsx";
import { CheckField, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { toFields } from "../form-values.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

/** The fields of the form for a sign-in policy. */
export const SignInPolicyForm = Type.Object({
  requiresSso: Type.Boolean(),
  requiresSecondFactor: Type.Boolean(),
  emailDomains: Type.Optional(Type.Array(Type.String())),
});

type Props = SettingsProps & {
  policy: SignInPolicy;
  /** Name of the identity provider; null: none is configured. */
  ssoName: string | null;
};

/** How members of an organization must sign in. Only owners can change it. */
export function SignInPolicyPage({ policy, ssoName, ...frame }: Props) {
  const { site, mayChange, typedValues, formError } = frame;
  return (
    <SettingsFrame {...frame} path="/settings/sign-in">
      <p>
        A member who doesn’t fulfill the policy sees nothing of the organization until they do, also where they are
        signed in already. API keys are not affected.
      </p>
      <SchemaForm
        {...{
          schema: SignInPolicyForm,
          values: typedValues ?? toFields(SignInPolicyForm, policy),
          formError,
          mayChange,
        }}
        action={`${site.base}/settings/sign-in`}
      >
        <fieldset>
          <legend>Sign-in policy</legend>
          <CheckField
            name="requiresSso"
            hint={
              ssoName === null
                ? "This server has no identity provider, so nobody could sign in."
                : `Members must sign in with ${ssoName}. Passwords and passkeys are not enough.`
            }
          >
            Require single sign-on
          </CheckField>
          <CheckField
            name="requiresSecondFactor"
            hint="Members must sign in with a code after their password, with a passkey, or with single sign-on, whose provider asks for a second factor itself."
          >
            Require a second factor
          </CheckField>
          <SchemaField
            name="emailDomains"
            label="Allowed email domains"
            hint="Comma-separated, such as example.com. Only people with such an address can be members."
            placeholder="Any"
          />
        </fieldset>
        {mayChange ? <Submit>Save policy</Submit> : <p class="muted">Only owners can change the sign-in policy.</p>}
      </SchemaForm>
    </SettingsFrame>
  );
}
