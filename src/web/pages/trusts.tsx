import { ciProviders } from "../../db/tables/keys.ts";
import { scopes } from "../../http/operation.ts";
import { defaultIssuers, defaultMinutes, maxMinutes, type Trust } from "../../trusts/schema.ts";
import { Heads, Wide } from "../components/figures.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { SettingsFrame } from "./settings.tsx";

type Props = {
  site: Site;
  viewer: Viewer;
  trusts: Trust[];
  done?: string;
  wrong?: string;
  /** The submitted values, when they were rejected. */
  typed?: URLSearchParams;
  mayChange: boolean;
};

const providerLabels = { github: "GitHub Actions", gitlab: "GitLab CI" } as const;

/** CI jobs that an organization trusts, and a form to add some. */
export function TrustsPage({ trusts, typed, mayChange, ...frame }: Props) {
  const { base, baseUrl } = frame.site;
  return (
    <SettingsFrame {...frame} path="/settings/ci">
      <p>
        Jobs of these repositories get an API key for their ID token, so that no key is stored in CI. The tokens must be
        for the audience <code>{baseUrl}</code>. See <a href={`${base}/docs/ci`}>Pull requests and CI</a>.
      </p>
      {trusts.length === 0 ? (
        <p class="muted">No trusted repositories yet.</p>
      ) : (
        <Wide label="Trusted repositories">
          <table class="list">
            <Heads
              labels={["Repository", "Provider", "Ref", "Environment", "Scopes", "Keys expire"]}
              numbers={mayChange ? ["Actions"] : []}
            />
            <tbody>
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
                      <form method="post" action={`${base}/settings/ci/${trust.id}/remove`}>
                        <button class="bad" type="submit" aria-label={`Remove ${trust.repository}`}>
                          Remove
                        </button>
                      </form>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {mayChange ? <TrustForm base={base} typed={typed} /> : <p class="muted">Only owners can change this list.</p>}
    </SettingsFrame>
  );
}

type FormProps = { base: string; typed: URLSearchParams | undefined };

function TrustForm({ base, typed }: FormProps) {
  const value = (name: string, fallback = "") => typed?.get(name) ?? fallback;
  const held = typed?.getAll("scope") ?? ["read", "run"];
  return (
    <form method="post" action={`${base}/settings/ci`}>
      <h2>Trust a repository</h2>
      <p class="field">
        <label>
          Provider{" "}
          <select name="provider">
            {ciProviders.map((each) => (
              <option key={each} value={each} selected={value("provider") === each}>
                {providerLabels[each]}
              </option>
            ))}
          </select>
        </label>
      </p>
      <p class="field">
        <label>
          Repository
          <input name="repository" required maxLength={255} placeholder="acme/docs" value={value("repository")} />
        </label>
      </p>
      <p class="field">
        <label>
          Repository ID
          <input
            name="repositoryId"
            maxLength={255}
            placeholder="Set by the first job"
            value={value("repositoryId")}
            aria-describedby="repository-id-hint"
          />
        </label>
        <span class="hint" id="repository-id-hint">
          The ID never changes, so a new repository with the same name gets no keys. On GitHub,{" "}
          <code>gh api repos/acme/docs --jq .id</code> prints it; on GitLab, it’s the project ID.
        </span>
      </p>
      <p class="field">
        <label>
          Ref
          <input name="ref" maxLength={255} placeholder="Any" value={value("ref")} aria-describedby="ref-hint" />
        </label>
        <span class="hint" id="ref-hint">
          For example, <code>refs/heads/main</code> or <code>refs/pull/*</code> on GitHub, <code>main</code> on GitLab.
        </span>
      </p>
      <p class="field">
        <label>
          Environment
          <input name="environment" maxLength={255} placeholder="Any" value={value("environment")} />
        </label>
      </p>
      <p class="field">
        <label>
          Issuer
          <input
            name="issuer"
            type="url"
            maxLength={2000}
            placeholder={`Default: ${Object.values(defaultIssuers).join(" or ")}`}
            value={value("issuer")}
            aria-describedby="issuer-hint"
          />
        </label>
        <span class="hint" id="issuer-hint">
          Only for a self-hosted GitHub or GitLab server.
        </span>
      </p>
      <fieldset>
        <legend>Scopes</legend>
        {scopes.map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" name="scope" value={scope} checked={held.includes(scope)} />
            <code>{scope}</code>
          </label>
        ))}
      </fieldset>
      <p class="field">
        <label>
          Minutes until a key expires
          <input
            name="minutes"
            type="number"
            min="1"
            max={maxMinutes}
            required
            value={value("minutes", String(defaultMinutes))}
          />
        </label>
      </p>
      <button class="main" type="submit">
        Trust repository
      </button>
    </form>
  );
}
