import { Type } from "@sinclair/typebox";
import type { ComponentChildren } from "preact";
import { version } from "../../../package.json" with { type: "json" };
import type { Org } from "../../auth/orgs.ts";
import { Nullable } from "../../schema.ts";
import { Notices, Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { CheckField, type FormError, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { toFields } from "../form-values.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const tabs = [
  ["Organization", "/settings"],
  ["Members", "/settings/members"],
  ["Sign-in", "/settings/sign-in"],
  ["API keys", "/settings/keys"],
  ["CI", "/settings/ci"],
  ["Models", "/settings/models"],
  ["Secrets", "/settings/secrets"],
  ["Notifications", "/settings/notifications"],
  ["Workers", "/settings/workers"],
  ["Queue", "/settings/queue"],
  ["Backups", "/settings/backups"],
  ["Data", "/settings/data"],
  ["Audit log", "/settings/audit-log"],
] as const;
type Tab = (typeof tabs)[number];

/** Which viewers see a tab, for tabs that not everyone sees. */
const audiences: { [path in Tab[1]]?: (viewer: Viewer) => boolean } = {
  "/settings/workers": ({ hasWorkers }) => hasWorkers,
  "/settings/queue": ({ isOperator }) => isOperator,
  "/settings/backups": ({ isOperator }) => isOperator,
  "/settings/audit-log": (viewer) => may(viewer, "audit"),
};

const isShown = ([, path]: Tab, viewer: Viewer, current: string) =>
  path === current || (audiences[path]?.(viewer) ?? true);

/** The messages of the last submitted form on a settings page. If the form was rejected, also its values. */
export type FormResult = {
  successMessage?: string;
  errorMessage?: string;
  formError?: FormError;
  typedValues?: URLSearchParams;
};

/** The input of every settings page. */
export type SettingsProps = FormResult & { site: Site; viewer: Viewer; mayChange: boolean };

type FrameProps = Omit<SettingsProps, "mayChange"> & {
  /** Path of the current tab. */
  path: Tab[1];
  children: ComponentChildren;
};

/** The frame of the settings pages, with tabs and the messages of the last form. */
export function SettingsFrame({ site, viewer, path, successMessage, errorMessage, children }: FrameProps) {
  const title = tabs.find(([, each]) => each === path)?.[0] ?? "Settings";
  return (
    <Layout site={site} viewer={viewer} path={path} title={`${title} · Settings`}>
      <div class="toolbar">
        <h1>Settings</h1>
      </div>
      <nav class="tabs" aria-label="Settings">
        {tabs
          .filter((tab) => isShown(tab, viewer, path))
          .map(([name, each]) => (
            <a key={each} href={site.base + each} aria-current={each === path ? "page" : undefined}>
              {name}
            </a>
          ))}
      </nav>
      <Notices successMessage={successMessage} errorMessage={errorMessage} />
      <div class="settings">{children}</div>
    </Layout>
  );
}

const RunLimit = Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 })));
const UsdLimit = Type.Optional(Nullable(Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 })));

/** The fields of the form for an organization. */
export const OrgSettings = Type.Object({
  name: Type.String({ maxLength: 200 }),
  timeZone: Type.String(),
  maxRunsAtOnce: RunLimit,
  maxRunsADay: RunLimit,
  maxUsdAMonth: UsdLimit,
  maxUsdARun: UsdLimit,
  judgeModels: Type.Optional(Nullable(Type.Array(Type.String()))),
  hasResultsPage: Type.Boolean(),
});

type Props = SettingsProps & {
  org: Org;
  /** How much the organization has spent on models this month. */
  spentUsd: number;
  /** Server defaults for settings that the organization leaves blank. */
  defaults: { runsAtOnce: number; runsADay: number | null };
  /** A release that is newer than this service; null: none is known, or the viewer isn't an owner. */
  newerVersion: string | null;
};

/** Name, time zone and limits of an organization. */
export function OrgPage({ org, spentUsd, defaults, newerVersion, ...frame }: Props) {
  const { site, mayChange, typedValues, formError } = frame;
  const storedSettings = { ...org, hasResultsPage: org.resultsPath !== null };
  return (
    <SettingsFrame {...frame} path="/settings">
      {newerVersion !== null && (
        <p class="notice">
          evald {newerVersion} is available. This service runs {version}.{" "}
          <a href={`${site.base}/docs/install`}>Upgrade</a>
        </p>
      )}
      <SchemaForm
        {...{ schema: OrgSettings, values: typedValues ?? toFields(OrgSettings, storedSettings), formError, mayChange }}
        action={`${site.base}/settings`}
      >
        <fieldset>
          <legend>Organization</legend>
          <SchemaField name="name" label="Name" required />
          <SchemaField
            name="timeZone"
            label="Time zone"
            hint="Used for schedules, reports and monthly spending. For example, Europe/Berlin."
            required
            list="zones"
          />
          <datalist id="zones">
            {Intl.supportedValuesOf("timeZone").map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </fieldset>
        <fieldset>
          <legend>Limits</legend>
          <SchemaField
            name="maxRunsAtOnce"
            label="Concurrent runs"
            placeholder={`Server default (${defaults.runsAtOnce})`}
          />
          <SchemaField
            name="maxRunsADay"
            label="Daily run limit"
            hint="Runs started per rolling 24 hours. Extra runs are queued."
            placeholder={defaults.runsADay === null ? "Unlimited" : `Server default (${defaults.runsADay})`}
          />
        </fieldset>
        <fieldset>
          <legend>Models</legend>
          <SchemaField
            name="maxUsdAMonth"
            label="Monthly budget (USD)"
            hint={`$${spentUsd.toFixed(2)} spent this month. Runs that would exceed the budget are stopped.`}
            placeholder="Unlimited"
          />
          <SchemaField name="maxUsdARun" label="Budget per run (USD)" placeholder="Server default" />
          <SchemaField
            name="judgeModels"
            label="Judge models"
            hint="Comma-separated provider/model in order of preference. evald picks the first from a different vendor than the agent."
            placeholder="Server default"
          />
        </fieldset>
        <fieldset>
          <legend>Public results page</legend>
          <CheckField
            name="hasResultsPage"
            hint="The page shows the grade, trend and method of the prompts that you choose in their settings. It has no sessions. Turning it off revokes the URL for good."
          >
            Show chosen prompts to everyone with the URL
          </CheckField>
          {org.resultsPath && (
            <p class="copy">
              <a id="results-url" href={site.base + org.resultsPath}>
                {site.baseUrl + org.resultsPath}
              </a>
              <button type="button" data-copy="#results-url" class="only-live">
                Copy
              </button>
            </p>
          )}
        </fieldset>
        {mayChange ? <Submit>Save settings</Submit> : <p class="muted">Only owners can change these settings.</p>}
      </SchemaForm>
    </SettingsFrame>
  );
}
