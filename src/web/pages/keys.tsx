import { Type } from "@sinclair/typebox";
import { creatorLabel, keyCreatorLabel } from "../../auth/key-labels.ts";
import type { ApiKey } from "../../auth/key-schema.ts";
import { keyScopes } from "../../http/operation.ts";
import { Nullable, OneOf } from "../../schema.ts";
import { List, toSorting } from "../components/figures.tsx";
import { Choice, Filter } from "../components/filter.tsx";
import { DangerButton, NewSecret, Submit } from "../components/form-parts.tsx";
import { CheckField, ChoiceField, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { Time } from "../components/when.tsx";
import { allDocs, sectionsOf } from "../docs.ts";
import { toFields } from "../form-values.ts";
import type { Site } from "../site.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

const scopeDescriptions: Record<(typeof keyScopes)[number], string> = {
  read: "Read prompts, runs, reports and sessions",
  run: "Start and cancel runs",
  write: "Manage prompts, providers and settings",
  delete: "Delete prompts, runs, reports and the organization",
  report_friction: "Report problems from your users’ agents (as the only scope)",
  report_traffic: "Send counts of access logs",
  audit: "Read the audit log",
  operate: "See and control the queue of all organizations",
};
/** Only operators can create keys with the scope `operate`. */
const toScopeLabels = ({ isOperator }: SettingsProps["viewer"]) =>
  Object.fromEntries(
    keyScopes
      .filter((scope) => scope !== "operate" || isOperator)
      .map((scope) => [
        scope,
        <>
          {scopeDescriptions[scope]} <code>{scope}</code>
        </>,
      ]),
  );

const expirations = [
  ["", "Never"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In 1 year"],
] as const;

/** The fields of the form for a new key. `days`: null or 0 if the key never expires. */
export const NewKey = Type.Object({
  name: Type.String({ maxLength: 200 }),
  scopes: Type.Array(OneOf(keyScopes)),
  usesCompatibilityMode: Type.Boolean(),
  days: Nullable(Type.Integer({ minimum: 0, maximum: 3650 })),
});

/** The defaults are the scopes that CI and editors need to run prompts, and the time for which most teams keep a secret. */
const newKeyDefaults = { scopes: ["read", "run"], days: 90 };

type Props = SettingsProps & {
  keys: ApiKey[];
  sort?: string;
  createdBy?: string;
  /** Everyone who created a key. */
  creators: NonNullable<ApiKey["createdBy"]>[];
  /** Valid keys of people who left. */
  formerKeys: ApiKey[];
  /** ID of the key that the form will create. */
  nextId: string;
  now: number;
  /** The key that was just created. It is shown only once. */
  newKey?: { key: string; apiKey: ApiKey };
};

/** API keys of an organization, and a form to create one. */
export function KeysPage({ keys, sort, createdBy, creators, formerKeys, nextId, now, newKey, ...frame }: Props) {
  const {
    site: { base },
    typedValues,
    formError,
    mayChange,
  } = frame;
  return (
    <SettingsFrame {...frame} path="/settings/keys">
      {newKey && <CreatedKey site={frame.site} newKey={newKey} />}
      {formerKeys.length > 0 && <FormerKeys base={base} keys={formerKeys} mayChange={mayChange} />}
      {creators.length > 0 && (
        <Filter action={`${base}/settings/keys`} sort={sort}>
          <Choice name="createdBy" label="Created by" allLabel="Created by anyone" value={createdBy}>
            {creators.map((creator) => [creator.id, creatorLabel(creator)])}
          </Choice>
        </Filter>
      )}
      {keys.length === 0 ? (
        <p class="muted">No API keys yet. Create one for CI, scripts or MCP clients.</p>
      ) : (
        <KeyTable {...{ base, keys, sort, createdBy, now, mayChange }} />
      )}
      {mayChange ? (
        <SchemaForm
          {...{ schema: NewKey, values: typedValues ?? toFields(NewKey, newKeyDefaults), formError }}
          action={`${base}/settings/keys`}
        >
          <h2>New API key</h2>
          <input type="hidden" name="id" value={nextId} />
          <SchemaField name="name" label="Name" required placeholder="ci" />
          <ChoiceField name="scopes" legend="Scopes" labels={toScopeLabels(frame.viewer)} />
          <CheckField name="usesCompatibilityMode">
            Compatibility mode: for clients of other tools. New runs replace unfinished ones; <code>error</code>{" "}
            contains the full message.
          </CheckField>
          <SchemaField name="days" label="Expires" options={expirations} />
          <Submit>Create API key</Submit>
        </SchemaForm>
      ) : (
        <p class="muted">Only admins and owners can create and revoke API keys.</p>
      )}
    </SettingsFrame>
  );
}

type TableProps = Pick<Props, "keys" | "sort" | "createdBy" | "now" | "mayChange"> & { base: string };

const KeyTable = ({ base, keys, sort, createdBy, now, mayChange }: TableProps) => (
  <List
    label="API keys"
    isStacked
    labels={[
      { label: "Name", sort: "name" },
      "Key",
      "Scopes",
      { label: "Created by", sort: "creator" },
      { label: "Last used", sort: "used", largestFirst: true },
      { label: "Expires", sort: "expires" },
    ]}
    numbers={mayChange ? ["Actions"] : []}
    sorting={toSorting(`${base}/settings/keys`, { sort, createdBy }, "-created")}
  >
    {keys.map((key) => (
      <tr key={key.id} class={isInactive(key, now) ? "inactive" : undefined}>
        <th scope="row">{key.name}</th>
        <td data-label="Key">
          <code>{key.display}</code>
        </td>
        <td data-label="Scopes">
          {key.scopes?.join(", ") ?? "All except operate and audit"}
          {key.usesCompatibilityMode && ", compatibility mode"}
        </td>
        <td data-label="Created by">
          <CreatorName apiKey={key} />
        </td>
        <td class="when" data-label="Last used">
          {key.lastUsedAt ? <Time at={key.lastUsedAt} /> : "Never"}
        </td>
        <td class="when" data-label="Expires">
          <Expiry apiKey={key} now={now} />
        </td>
        {mayChange && (
          <td class="number">
            {!isInactive(key, now) && (
              <DangerButton action={`${base}/settings/keys/${key.id}/revoke`} label={`Revoke ${key.name}`}>
                Revoke
              </DangerButton>
            )}
          </td>
        )}
      </tr>
    ))}
  </List>
);

/** The keys of people who left, with a button that revokes all of them. */
const FormerKeys = ({ base, keys, mayChange }: { base: string; keys: ApiKey[]; mayChange: boolean }) => (
  <div class="notice" data-former={keys.length}>
    <p>
      {keys.length === 1 ? "An API key" : `${keys.length} API keys`} of people who left still{" "}
      {keys.length === 1 ? "works" : "work"}: {keys.map(({ name }) => name).join(", ")}.
    </p>
    {mayChange && (
      <DangerButton action={`${base}/settings/keys/revoke-former`} label="Revoke the keys of people who left">
        Revoke all
      </DangerButton>
    )}
  </div>
);

function CreatedKey({ site, newKey: { key, apiKey } }: { site: Site; newKey: NonNullable<Props["newKey"]> }) {
  const mcp = allDocs().find(({ slug }) => slug === "mcp");
  return (
    <NewSecret id="new-key" title={`API key “${apiKey.name}” created`} value={key}>
      <details open>
        <summary>curl</summary>
        <pre>
          <code>{`export EVALD_KEY=${key}\ncurl -sS -H "Authorization: Bearer $EVALD_KEY" "${site.baseUrl}/api/v1/whoami"`}</code>
        </pre>
      </details>
      {mcp &&
        sectionsOf(mcp, site, "Connect ").map(({ title, html }) => (
          <details key={title}>
            <summary>{title}</summary>
            <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />
          </details>
        ))}
    </NewSecret>
  );
}

/** Who created a key. */
const CreatorName = ({ apiKey }: { apiKey: ApiKey }) => (
  <span
    class={apiKey.createdBy === null ? "soft" : undefined}
    data-creator={apiKey.createdBy?.id}
    data-left={apiKey.createdBy?.isMember === false ? "true" : undefined}
  >
    {keyCreatorLabel(apiKey)}
  </span>
);

const isInactive = ({ revokedAt, expiresAt }: ApiKey, now: number) =>
  revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= now);

function Expiry({ apiKey: { revokedAt, expiresAt }, now }: { apiKey: ApiKey; now: number }) {
  if (revokedAt)
    return (
      <>
        Revoked <Time at={revokedAt} />
      </>
    );
  if (!expiresAt) return <>Never</>;
  return (
    <>
      {Date.parse(expiresAt) <= now && "Expired "}
      <Time at={expiresAt} />
    </>
  );
}
