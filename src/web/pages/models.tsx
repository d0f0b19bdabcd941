import type { Config } from "../../config.ts";
import type { ModelSource } from "../../models/models.ts";
import { providerVariables } from "../../modelsettings.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { SettingsFrame } from "./settings.tsx";

const names: Record<ModelSource["provider"], string> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  google: "Google",
  "openai-compatible": "OpenAI-compatible server",
};

type Props = {
  site: Site;
  viewer: Viewer;
  models: ModelSource[];
  /** Judges of the organisation's own; null: the service's. */
  judges: string[] | null;
  config: Pick<Config, "agentModel" | "judgeModels" | "secretKey">;
  done?: string;
  wrong?: string;
  typed?: URLSearchParams;
  mayChange: boolean;
};

/** Which models agents and the judge use, and the keys for them. */
export function ModelsPage({ models, judges, config, typed, mayChange, ...frame }: Props) {
  const { base } = frame.site;
  const canStore = config.secretKey !== null;
  return (
    <SettingsFrame {...frame} path="/settings/models">
      <dl class="facts">
        <div>
          <dt>Agents use</dt>
          <dd>{config.agentModel ?? "no model, unless a prompt names one: the explorer reads the docs by rules"}</dd>
        </div>
        <div>
          <dt>Sessions are judged by</dt>
          <dd>
            {(judges ?? config.judgeModels).join(", or ") || "no model: reports say that the goal was not judged"}
          </dd>
        </div>
      </dl>
      <p class="muted">
        <a href={`${base}/docs/models`}>Models and keys</a> says how these are set.
      </p>

      {mayChange && (
        <>
          <h2>Try a model</h2>
          <form method="post" action={`${base}/settings/models/test`} class="line">
            <label>
              Model
              <input
                name="model"
                required
                value={typed?.get("model") ?? config.agentModel ?? ""}
                placeholder="anthropic/claude-opus-4-8"
              />
            </label>
            <button type="submit">Make one small call</button>
          </form>
        </>
      )}
      <h2>Keys</h2>
      {mayChange && !canStore && (
        <p class="notice">
          Keys of the organisation's own can be stored once the operator sets <code>EVALD_SECRET_KEY</code>, which
          encrypts them; <code>openssl rand -base64 32</code> makes one.
        </p>
      )}
      {models.map(({ provider, source, key, baseUrl }) => (
        <section key={provider} class="card">
          <h3>{names[provider]}</h3>
          <p>
            {source === "none" && "No key."}
            {source === "environment" && (
              <>
                The service's own, from <code>{providerVariables[provider].key}</code> ({key}).
              </>
            )}
            {source === "organisation" && <>The organisation's own ({key}).</>}{" "}
            {baseUrl && (
              <>
                Calls go to <code>{baseUrl}</code>.
              </>
            )}
          </p>
          {mayChange && canStore && (
            <details open={typed?.get("provider") === provider}>
              <summary>{source === "organisation" ? "Replace or forget it" : "Set the organisation's own"}</summary>
              <form method="post" action={`${base}/settings/models`}>
                <input type="hidden" name="provider" value={provider} />
                <p class="field">
                  <label>
                    Key{" "}
                    <input name="key" type="password" autocomplete="off" required={provider !== "openai-compatible"} />
                  </label>
                  <span class="hint">It is encrypted before it is stored, and never shown again.</span>
                </p>
                <p class="field">
                  <label>
                    Base URL
                    <input
                      name="baseUrl"
                      type="url"
                      value={typed?.get("provider") === provider ? (typed.get("baseUrl") ?? "") : ""}
                      placeholder={providerVariables[provider].fallback ?? "http://127.0.0.1:11434/v1"}
                      required={providerVariables[provider].fallback === null}
                    />
                  </label>
                </p>
                <button class="main" type="submit">
                  Store
                </button>
              </form>
              {source === "organisation" && (
                <form method="post" action={`${base}/settings/models/forget`}>
                  <input type="hidden" name="provider" value={provider} />
                  <button class="bad" type="submit">
                    Forget the key
                  </button>
                </form>
              )}
            </details>
          )}
        </section>
      ))}
      {!mayChange && <p class="muted">Only an admin or an owner may change keys.</p>}
    </SettingsFrame>
  );
}
