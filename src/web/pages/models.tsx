import { Type } from "@sinclair/typebox";
import type { Config } from "../../config/config.ts";
import { modelProviders, providerVariables } from "../../config/model-settings.ts";
import type { ModelSource } from "../../models/models.ts";
import { OneOf } from "../../schema.ts";
import { AgentLogins } from "../components/agent-logins.tsx";
import { Fact } from "../components/figures.tsx";
import { DangerButton, Submit } from "../components/form-parts.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

const providerNames: Record<ModelSource["provider"], string> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  google: "Google",
  "openai-compatible": "OpenAI-compatible server",
};

/** The fields of the form for a model key. */
export const ModelKey = Type.Object({
  provider: OneOf(modelProviders),
  key: Type.String(),
  baseUrl: Type.Optional(Type.String({ format: "uri" })),
});

type Props = SettingsProps & {
  logins: Omit<Parameters<typeof AgentLogins>[0], "base" | "mayChange" | "values">;
  providers: ModelSource[];
  /** Judge models of the organization; null: the server default. */
  judgeModels: string[] | null;
  config: Config;
};

/** Models of agents and the judge, and their API keys. */
export function ModelsPage({ providers, judgeModels, config, logins, ...frame }: Props) {
  const {
    site: { base },
    typedValues,
    formError,
    mayChange,
  } = frame;
  const canStore = config.secretKey !== null;
  return (
    <SettingsFrame {...frame} path="/settings/models">
      <dl class="facts">
        <Fact name="Agent model">
          {config.agentModel ?? "None. Unless a prompt sets a model, the explorer agent reads the docs without one."}
        </Fact>
        <Fact name="Judge models">
          {(judgeModels ?? config.judgeModels).join(", ") || "None. Reports don’t say whether the goal was reached."}
        </Fact>
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
                value={typedValues?.get("model") ?? config.agentModel ?? ""}
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
          To let organizations store their own keys and logins, the operator must set <code>EVALD_SECRET_KEY</code>,
          which encrypts them. Generate one with <code>openssl rand -base64 32</code>.
        </p>
      )}
      {providers.map((keySource) => (
        <ProviderCard
          key={keySource.provider}
          {...{ base, keySource, typedValues, formError }}
          mayStore={mayChange && canStore}
        />
      ))}
      <AgentLogins {...{ base, mayChange, ...logins }} values={typedValues} />
      {!mayChange && <p class="muted">Only admins and owners can change model keys and logins.</p>}
    </SettingsFrame>
  );
}

type CardProps = Pick<Props, "typedValues" | "formError"> & { base: string; keySource: ModelSource; mayStore: boolean };

/** The API key of a model provider, and the form to set it. */
function ProviderCard({
  base,
  keySource: { provider, source, key, baseUrl },
  mayStore,
  typedValues,
  formError,
}: CardProps) {
  const rejectedValues = typedValues?.get("provider") === provider ? typedValues : undefined;
  return (
    <section class="card">
      <h3>{providerNames[provider]}</h3>
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
      {mayStore && (
        <details open={rejectedValues !== undefined}>
          <summary>{source === "organization" ? "Replace or remove" : "Set organization key"}</summary>
          <SchemaForm
            schema={ModelKey}
            values={rejectedValues ?? new URLSearchParams()}
            formError={rejectedValues && formError}
            prefix={`${provider}-`}
            action={`${base}/settings/models`}
          >
            <input type="hidden" name="provider" value={provider} />
            <SchemaField
              name="key"
              label="API key"
              hint="Encrypted at rest and never shown again."
              type="password"
              autocomplete="off"
              value=""
              required={provider !== "openai-compatible"}
            />
            <SchemaField
              name="baseUrl"
              label="Base URL"
              placeholder={providerVariables[provider].fallback ?? "http://127.0.0.1:11434/v1"}
              required={providerVariables[provider].fallback === null}
            />
            <Submit>Save key</Submit>
          </SchemaForm>
          {source === "organization" && (
            <DangerButton action={`${base}/settings/models/forget`} name="provider" value={provider}>
              Remove key
            </DangerButton>
          )}
        </details>
      )}
    </section>
  );
}
