import type { ComponentChildren } from "preact";
import type { Org } from "../../auth/orgs.ts";
import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const tabs = [
  ["Organization", "/settings"],
  ["Members", "/settings/members"],
  ["API keys", "/settings/keys"],
  ["CI", "/settings/ci"],
  ["Models", "/settings/models"],
  ["Notifications", "/settings/notifications"],
  ["Workers", "/settings/workers"],
] as const;
type Tab = (typeof tabs)[number];

/** Workers have a tab only where the organization can see some. */
const isShown = ([, path]: Tab, viewer: Viewer, current: string) =>
  path !== "/settings/workers" || path === current || viewer.hasWorkers;

type FrameProps = {
  site: Site;
  viewer: Viewer;
  /** Path of the current tab. */
  path: Tab[1];
  /** Success or error message of the last form. */
  done?: string;
  wrong?: string;
  children: ComponentChildren;
};

/** Frame of the settings pages: tabs and the message of the last form. */
export function SettingsFrame({ site, viewer, path, done, wrong, children }: FrameProps) {
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
      <div class="settings">{children}</div>
    </Layout>
  );
}

type Props = Pick<FrameProps, "site" | "viewer" | "done" | "wrong"> & {
  org: Org;
  /** Model spending of the organization this month. */
  spentUsd: number;
  /** Server defaults for settings that the organization leaves blank. */
  defaults: { runsAtOnce: number; runsADay: number | null };
  /** The submitted values, when they were rejected. */
  typed?: URLSearchParams;
  mayChange: boolean;
};

/** Name, time zone and limits of an organization. */
export function OrgPage({ org, spentUsd, defaults, typed, mayChange, ...frame }: Props) {
  const value = (name: string, stored: string | number | null) => typed?.get(name) ?? String(stored ?? "");
  return (
    <SettingsFrame {...frame} path="/settings">
      <form method={mayChange ? "post" : "get"} action={`${frame.site.base}/settings`}>
        <fieldset disabled={!mayChange}>
          <legend>Organization</legend>
          <p class="field">
            <label>
              Name <input name="name" required maxLength={200} value={value("name", org.name)} />
            </label>
          </p>
          <p class="field">
            <label>
              Time zone
              <input
                name="timeZone"
                required
                list="zones"
                value={value("timeZone", org.timeZone)}
                aria-describedby="zone-hint"
              />
            </label>
            <span class="hint" id="zone-hint">
              Used for schedules, reports and monthly spending. For example, Europe/Berlin.
            </span>
          </p>
          <datalist id="zones">
            {Intl.supportedValuesOf("timeZone").map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </fieldset>
        <fieldset disabled={!mayChange}>
          <legend>Limits</legend>
          <p class="field">
            <label>
              Concurrent runs{" "}
              <input
                name="maxRunsAtOnce"
                inputMode="numeric"
                pattern="[0-9]*"
                placeholder={`Server default (${defaults.runsAtOnce})`}
                value={value("maxRunsAtOnce", org.maxRunsAtOnce)}
              />
            </label>
          </p>
          <p class="field">
            <label>
              Daily run limit{" "}
              <input
                name="maxRunsADay"
                inputMode="numeric"
                pattern="[0-9]*"
                placeholder={defaults.runsADay === null ? "Unlimited" : `Server default (${defaults.runsADay})`}
                value={value("maxRunsADay", org.maxRunsADay)}
                aria-describedby="day-hint"
              />
            </label>
            <span class="hint" id="day-hint">
              Runs started per rolling 24 hours. Extra runs are queued.
            </span>
          </p>
        </fieldset>
        <fieldset disabled={!mayChange}>
          <legend>Models</legend>
          <p class="field">
            <label>
              Monthly budget (USD){" "}
              <input
                name="maxUsdAMonth"
                inputMode="decimal"
                placeholder="Unlimited"
                value={value("maxUsdAMonth", org.maxUsdAMonth)}
                aria-describedby="month-hint"
              />
            </label>
            <span class="hint" id="month-hint">
              ${spentUsd.toFixed(2)} spent this month. Runs that would exceed the budget are stopped.
            </span>
          </p>
          <p class="field">
            <label>
              Budget per run (USD){" "}
              <input
                name="maxUsdARun"
                inputMode="decimal"
                placeholder="Server default"
                value={value("maxUsdARun", org.maxUsdARun)}
              />
            </label>
          </p>
          <p class="field">
            <label>
              Judge models{" "}
              <input
                name="judgeModels"
                placeholder="Server default"
                value={value("judgeModels", org.judgeModels?.join(", ") ?? null)}
                aria-describedby="judge-hint"
              />
            </label>
            <span class="hint" id="judge-hint">
              Comma-separated provider/model in order of preference. evald picks the first from a different vendor than
              the agent.
            </span>
          </p>
        </fieldset>
        <fieldset disabled={!mayChange}>
          <legend>Public results page</legend>
          <label class="check">
            <input
              type="checkbox"
              name="hasResultsPage"
              checked={typed ? typed.has("hasResultsPage") : org.resultsPath !== null}
              aria-describedby="results-hint"
            />
            Show chosen prompts to everyone with the URL
          </label>
          <p class="hint" id="results-hint">
            The page shows the grade, trend and method of the prompts that you choose in their settings. It has no
            sessions. Turning it off revokes the URL for good.
          </p>
          {org.resultsPath && (
            <p class="copy">
              <a id="results-url" href={frame.site.base + org.resultsPath}>
                {frame.site.baseUrl + org.resultsPath}
              </a>
              <button type="button" data-copy="#results-url" class="only-live">
                Copy
              </button>
            </p>
          )}
        </fieldset>
        {mayChange ? (
          <button class="main" type="submit">
            Save settings
          </button>
        ) : (
          <p class="muted">Only owners can change these settings.</p>
        )}
      </form>
    </SettingsFrame>
  );
}
