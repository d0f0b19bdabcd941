import { scopes } from "../../http/operation.ts";
import { defaultIssuers, defaultMinutes, defaultScopes, type Trust, TrustInput } from "../../trusts/schema.ts";
import { List } from "../components/figures.tsx";
import { DangerButton, Submit } from "../components/form-parts.tsx";
import { ChoiceField, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { toFields } from "../form-values.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

type Props = SettingsProps & { trusts: Trust[] };

const providerLabels = { github: "GitHub Actions", gitlab: "GitLab CI" } as const;

/** The CI jobs that an organization trusts, and a form to add more. */
export function TrustsPage({ trusts, ...frame }: Props) {
  const {
    site: { base, baseUrl },
    mayChange,
  } = frame;
  return (
    <SettingsFrame {...frame} path="/settings/ci">
      <p>
        CI jobs of these repositories sign in with their ID token. No stored key needed. The audience of the tokens must
        be <code>{baseUrl}</code>. See <a href={`${base}/docs/ci`}>Pull requests and CI</a>.
      </p>
      {trusts.length === 0 ? (
        <p class="muted">No trusted repositories yet.</p>
      ) : (
        <List
          label="Trusted repositories"
          labels={["Repository", "Provider", "Ref", "Environment", "Scopes", "Keys expire"]}
          numbers={mayChange ? ["Actions"] : []}
        >
          {trusts.map((trust) => (
            <tr key={trust.id}>
              <th scope="row">
                {trust.repository}
                <span class="aside block">
                  {trust.repositoryId === null ? "ID set by its first job" : `ID ${trust.repositoryId}`}
                </span>
              </th>
              <td title={trust.issuer}>{providerLabels[trust.provider]}</td>
              <td>{trust.ref === null ? "Any" : <code>{trust.ref}</code>}</td>
              <td>{trust.environment ?? "Any"}</td>
              <td>{trust.scopes.join(", ")}</td>
              <td>After {trust.minutes} min</td>
              {mayChange && (
                <td class="number">
                  <DangerButton action={`${base}/settings/ci/${trust.id}/remove`} label={`Remove ${trust.repository}`}>
                    Remove
                  </DangerButton>
                </td>
              )}
            </tr>
          ))}
        </List>
      )}
      {mayChange ? <TrustForm {...frame} /> : <p class="muted">Only owners can change this list.</p>}
    </SettingsFrame>
  );
}

const issuers = Object.values(defaultIssuers).join(" or ");
const scopeLabels = Object.fromEntries(scopes.map((scope) => [scope, <code key={scope}>{scope}</code>]));
const newTrustDefaults = { provider: "github", scopes: defaultScopes, minutes: defaultMinutes };

const TrustForm = ({ site, typedValues, formError }: SettingsProps) => (
  <SchemaForm
    {...{ schema: TrustInput, values: typedValues ?? toFields(TrustInput, newTrustDefaults), formError }}
    action={`${site.base}/settings/ci`}
  >
    <h2>Trust a repository</h2>
    <SchemaField name="provider" label="Provider" options={Object.entries(providerLabels)} />
    <SchemaField name="repository" label="Repository" required placeholder="acme/docs" />
    <SchemaField
      name="repositoryId"
      label="Repository ID"
      placeholder="Set by the first job"
      hint={
        <>
          The ID never changes, so a new repository with the same name gets no keys. On GitHub,{" "}
          <code>gh api repos/acme/docs --jq .id</code> prints it; on GitLab, it’s the project ID.
        </>
      }
    />
    <SchemaField
      name="ref"
      label="Ref"
      placeholder="Any"
      hint={
        <>
          For example, <code>refs/heads/main</code> or <code>refs/pull/*</code> on GitHub, <code>main</code> or{" "}
          <code>refs/tags/v*</code> on GitLab.
        </>
      }
    />
    <SchemaField name="environment" label="Environment" placeholder="Any" />
    <SchemaField
      name="issuer"
      label="Issuer"
      placeholder={`Default: ${issuers}`}
      hint="Only for a self-hosted GitHub or GitLab server."
    />
    <ChoiceField name="scopes" legend="Scopes" labels={scopeLabels} />
    <SchemaField name="minutes" label="Minutes until a key expires" required />
    <Submit>Trust repository</Submit>
  </SchemaForm>
);
