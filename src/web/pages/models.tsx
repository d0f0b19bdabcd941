import type { Config } from "../../config/config.ts";
import { providerVariables } from "../../config/model-settings.ts";
import type { ModelSource } from "../../models/models.ts";
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
  /** Judge models of the organization; null: the server default. */
  judges: string[] | null;
  config: Pick<Config, "agentModel" | "judgeModels" | "secretKey">;
  done?: string;
  wrong?: string;
  typed?: URLSearchParams;
  mayChange: boolean;
};

/** Models of agents and the judge, and their API keys. */
export function ModelsPage({ models, judges, config, typed, mayChange, ...frame }: Props) {
  const { base } = frame.site;
  const canStore = config.secretKey !== null;
  return (
    <SettingsFrame {...frame} path="/settings/models">
      <dl class="facts">
        <div>
          <dt>Agent model</dt>
          <dd>
            {config.agentModel ?? "None. Unless a prompt sets a model, the explorer agent reads the docs without one."}
          </dd>
        </div>
        <div>
          <dt>Judge models</dt>
          <dd>
            {(judges ?? config.judgeModels).join(", ") || "None. Reports don’t say whether the goal was reached."}
          </dd>
        </div>
      </dl>
      <p class="muted">
        See <a href={`${base}/docs/models`}>Models and keys</a> for how to set these.
      </p>

      {mayChange && (
        <>
          <h2>Test a model</h2>
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
            <button type="submit">Send test request</button>
          </form>
        </>
      )}
      <h2>Model API keys</h2>
      {mayChange && !canStore && (
        <p class="notice">
          To let organizations store their own keys, the operator must set <code>EVALD_SECRET_KEY</code>, which encrypts
          them. Generate one with <code>openssl rand -base64 32</code>.
        </p>
      )}
      {models.map(({ provider, source, key, baseUrl }) => (
        <section key={provider} class="card">
          <h3>{names[provider]}</h3>
          <p>
            {source === "none" && "No API key."}
            {source === "environment" && (
              <>
                Server key from <code>{providerVariables[provider].key}</code> ({key}).
              </>
            )}
            {source === "organization" && <>Organization key ({key}).</>}{" "}
            {baseUrl && (
              <>
                Requests go to <code>{baseUrl}</code>.
              </>
            )}
          </p>
          {mayChange && canStore && (
            <details open={typed?.get("provider") === provider}>
              <summary>{source === "organization" ? "Replace or remove" : "Set organization key"}</summary>
              <form method="post" action={`${base}/settings/models`}>
                <input type="hidden" name="provider" value={provider} />
                <p class="field">
                  <label>
                    {" "}
                    API key{" "}
                    <input name="key" type="password" autocomplete="off" required={provider !== "openai-compatible"} />
                  </label>
                  <span class="hint">Encrypted at rest and never shown again.</span>
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
                  Save key
                </button>
              </form>
              {source === "organization" && (
                <form method="post" action={`${base}/settings/models/forget`}>
                  <input type="hidden" name="provider" value={provider} />
                  <button class="bad" type="submit">
                    Remove key
                  </button>
                </form>
              )}
            </details>
          )}
        </section>
      ))}
      {!mayChange && <p class="muted">Only admins and owners can change model keys.</p>}
    </SettingsFrame>
  );
}
