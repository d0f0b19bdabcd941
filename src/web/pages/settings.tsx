import type { ComponentChildren } from "preact";
import type { Org } from "../../auth/orgs.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const tabs = [
  ["Organisation", "/settings"],
  ["Members", "/settings/members"],
  ["API keys", "/settings/keys"],
  ["Models", "/settings/models"],
] as const;

type FrameProps = {
  site: Site;
  viewer: Viewer;
  /** Which of the tabs is shown. */
  path: (typeof tabs)[number][1];
  /** What came of a form: good news, or what to mend. */
  done?: string;
  wrong?: string;
  children: ComponentChildren;
};

/** What all pages of settings share: the tabs, and what came of the last form. */
export function SettingsFrame({ site, viewer, path, done, wrong, children }: FrameProps) {
  const title = tabs.find(([, each]) => each === path)?.[0] ?? "Settings";
  return (
    <Layout site={site} viewer={viewer} path={path} title={`${title} · Settings`}>
      <div class="toolbar">
        <h1>Settings</h1>
      </div>
      <nav class="tabs" aria-label="Settings">
        {tabs.map(([name, each]) => (
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
  /** What models cost the organisation this month. */
  spentUsd: number;
  /** What holds where the organisation says nothing of its own. */
  defaults: { runsAtOnce: number; runsADay: number | null };
  /** What was typed, when it could not be taken. */
  typed?: URLSearchParams;
  mayChange: boolean;
};

/** Name, time zone and limits of an organisation. */
export function OrgPage({ org, spentUsd, defaults, typed, mayChange, ...frame }: Props) {
  const value = (name: string, stored: string | number | null) => typed?.get(name) ?? String(stored ?? "");
  return (
    <SettingsFrame {...frame} path="/settings">
      <form method={mayChange ? "post" : "get"} action={`${frame.site.base}/settings`}>
        <fieldset disabled={!mayChange}>
          <legend>Organisation</legend>
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
              For schedules, reports and the month that spending is counted in: a name like Europe/Berlin.
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
              Runs at once
              <input
                name="maxRunsAtOnce"
                inputMode="numeric"
                pattern="[0-9]*"
                placeholder={`${defaults.runsAtOnce} (the service's)`}
                value={value("maxRunsAtOnce", org.maxRunsAtOnce)}
              />
            </label>
          </p>
          <p class="field">
            <label>
              Runs a day
              <input
                name="maxRunsADay"
                inputMode="numeric"
                pattern="[0-9]*"
                placeholder={defaults.runsADay === null ? "no limit" : `${defaults.runsADay} (the service's)`}
                value={value("maxRunsADay", org.maxRunsADay)}
                aria-describedby="day-hint"
              />
            </label>
            <span class="hint" id="day-hint">
              Runs begun within 24 hours. What is asked for above it waits; nothing is lost.
            </span>
          </p>
        </fieldset>
        <fieldset disabled={!mayChange}>
          <legend>Models</legend>
          <p class="field">
            <label>
              USD a month
              <input
                name="maxUsdAMonth"
                inputMode="decimal"
                placeholder="no bound"
                value={value("maxUsdAMonth", org.maxUsdAMonth)}
                aria-describedby="month-hint"
              />
            </label>
            <span class="hint" id="month-hint">
              ${spentUsd.toFixed(2)} was spent this month. A run that would go beyond is ended and says so.
            </span>
          </p>
          <p class="field">
            <label>
              USD a run
              <input
                name="maxUsdARun"
                inputMode="decimal"
                placeholder="the service's"
                value={value("maxUsdARun", org.maxUsdARun)}
              />
            </label>
          </p>
          <p class="field">
            <label>
              Judges
              <input
                name="judgeModels"
                placeholder="the service's"
                value={value("judgeModels", org.judgeModels?.join(", ") ?? null)}
                aria-describedby="judge-hint"
              />
            </label>
            <span class="hint" id="judge-hint">
              Models as provider/model, best first; the first of another family than the agent's judges.
            </span>
          </p>
        </fieldset>
        {mayChange ? (
          <button class="main" type="submit">
            Save
          </button>
        ) : (
          <p class="muted">Only an owner may change these.</p>
        )}
      </form>
    </SettingsFrame>
  );
}
