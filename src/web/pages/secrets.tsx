import { Type } from "@sinclair/typebox";
import { type CheckSecret, CheckSecretInput, secretName } from "../../secrets/schema.ts";
import { List } from "../components/figures.tsx";
import { DangerButton, Submit } from "../components/form-parts.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { When } from "../components/when.tsx";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

/** The fields of the form for a secret. */
export const SecretForm = Type.Object({
  name: Type.String(secretName),
  value: CheckSecretInput.properties.value,
  hosts: Type.Optional(Type.String()),
});

type Props = SettingsProps & { secrets: CheckSecret[]; canStore: boolean; now: number };

/** The secrets of success checks, and a form to store them. */
export function SecretsPage({ secrets, canStore, now, ...frame }: Props) {
  const {
    site: { base },
    mayChange,
    typedValues,
    formError,
  } = frame;
  return (
    <SettingsFrame {...frame} path="/settings/secrets">
      <p>
        Success checks refer to a secret as <code>{"{{secret.NAME}}"}</code>. Agents never get its value, and nothing
        that evald stores or shows contains it. See{" "}
        <a href={`${base}/docs/prompts#secrets-of-checks`}>Secrets of checks</a>.
      </p>
      {secrets.length === 0 ? (
        <p class="muted">No secrets yet.</p>
      ) : (
        <List label="Secrets" labels={["Name", "Hosts", "Stored"]} numbers={mayChange ? ["Actions"] : []}>
          {secrets.map(({ name, hosts, state, updatedAt }) => (
            <tr key={name}>
              <th scope="row">
                <code>{name}</code>
                {state === "unreadable" && (
                  <span class="aside block">Can’t be decrypted. Restore EVALD_SECRET_KEY, or store it again.</span>
                )}
              </th>
              <td>{hosts?.join(", ") ?? "That of each check"}</td>
              <td>
                <When at={updatedAt} now={now} />
              </td>
              {mayChange && (
                <td class="number">
                  <DangerButton
                    action={`${base}/settings/secrets/delete`}
                    name="name"
                    value={name}
                    label={`Delete ${name}`}
                  >
                    Delete
                  </DangerButton>
                </td>
              )}
            </tr>
          ))}
        </List>
      )}
      {mayChange && !canStore && (
        <p class="notice">
          To store secrets, the operator must set <code>EVALD_SECRET_KEY</code>, which encrypts them. Generate one with{" "}
          <code>openssl rand -base64 32</code>.
        </p>
      )}
      {mayChange && canStore && (
        <SchemaForm
          {...{ schema: SecretForm, values: typedValues ?? new URLSearchParams(), formError }}
          action={`${base}/settings/secrets`}
        >
          <h2>Store a secret</h2>
          <SchemaField name="name" label="Name" required placeholder="ACME_TOKEN" />
          <SchemaField
            name="value"
            label="Value"
            hint="Encrypted at rest and never shown again. A secret of the same name is replaced."
            type="password"
            autocomplete="off"
            value=""
            required
          />
          <SchemaField
            name="hosts"
            label="Hosts"
            hint="The only hosts that may get it, separated by commas. Empty: those of the secret that it replaces, or else the host of each check."
            placeholder="api.acme.example"
          />
          <Submit>Save secret</Submit>
        </SchemaForm>
      )}
      {!mayChange && <p class="muted">Only admins and owners can change secrets.</p>}
    </SettingsFrame>
  );
}
