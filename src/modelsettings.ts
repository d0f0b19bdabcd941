import { readFileSync } from "node:fs";
import { ConfigError } from "./errors.ts";

/** Who serves models, each with its own protocol. `openai-compatible` is any server that speaks OpenAI's chat completions. */
export const modelProviders = ["anthropic", "openai", "google", "openai-compatible"] as const;
export type ModelProvider = (typeof modelProviders)[number];

/** What a million tokens cost in USD; `cached`: input that was read from the provider's cache. */
type Price = { in: number; out: number; cached: number };

/** Prices that the operator stated, by `provider/model`. */
export type Prices = Readonly<Record<string, Price>>;

/** Where a provider answers (no slash at the end) and with which key; null: not said. */
export type ModelPlace = { key: string | null; baseUrl: string | null };

/** The variables under which each provider's own programs look for them, and where it answers unless said otherwise. */
export const providerVariables: Record<ModelProvider, { key: string; baseUrl: string; fallback: string | null }> = {
  anthropic: { key: "ANTHROPIC_API_KEY", baseUrl: "ANTHROPIC_BASE_URL", fallback: "https://api.anthropic.com/v1" },
  openai: { key: "OPENAI_API_KEY", baseUrl: "OPENAI_BASE_URL", fallback: "https://api.openai.com/v1" },
  google: {
    key: "GOOGLE_GENERATIVE_AI_API_KEY",
    baseUrl: "GOOGLE_GENERATIVE_AI_BASE_URL",
    fallback: "https://generativelanguage.googleapis.com/v1beta",
  },
  "openai-compatible": { key: "OPENAI_COMPATIBLE_API_KEY", baseUrl: "OPENAI_COMPATIBLE_BASE_URL", fallback: null },
};

/** `provider/model` in its two parts; null if it is none. The name of a compatible server's model may have slashes itself. */
export function parseModelId(id: string): { provider: ModelProvider; name: string } | null {
  const provider = modelProviders.find((each) => id.startsWith(`${each}/`));
  const name = provider ? id.slice(provider.length + 1) : "";
  const shape = provider === "openai-compatible" ? /^[\w.:@+-]+(\/[\w.:@+-]+)*$/ : /^[\w.:@+-]+$/;
  return provider && name.length <= 200 && shape.test(name) ? { provider, name } : null;
}

export const modelSyntax = `a provider and a model, as in anthropic/claude-opus-4-8 (providers: ${modelProviders.join(", ")})`;

/** A setting that names a model; empty: none. */
export function modelSetting(value: string): string | null {
  if (value === "") return null;
  if (!parseModelId(value)) throw new ConfigError(modelSyntax);
  return value;
}

/** A setting that names models, best first. */
export const modelsSetting = (value: string): string[] =>
  value.split(",").flatMap((item) => modelSetting(item.trim()) ?? []);

const priceSyntax =
  'JSON or a file of it: USD for a million tokens, as in {"openai-compatible/llama3": {"in": 0.2, "out": 0.6, "cached": 0.05}}';

/** Prices as JSON or as the path of a file. What `cached` leaves out costs as much as `in`. */
export function pricesSetting(value: string): Prices {
  if (value === "") return {};
  let stated: unknown;
  try {
    stated = JSON.parse(value.trimStart().startsWith("{") ? value : readFileSync(value, "utf8"));
  } catch (error) {
    throw new ConfigError(`${priceSyntax}; ${error instanceof Error ? error.message : String(error)}`);
  }
  if (stated === null || typeof stated !== "object" || Array.isArray(stated)) throw new ConfigError(priceSyntax);
  return Object.fromEntries(
    Object.entries(stated).map(([id, price]) => {
      if (!parseModelId(id)) throw new ConfigError(`${priceSyntax}; ${JSON.stringify(id)} is not ${modelSyntax}`);
      const of = (name: string, otherwise?: number): number => {
        const usd: unknown = price?.[name] ?? otherwise;
        if (typeof usd === "number" && Number.isFinite(usd) && usd >= 0) return usd;
        throw new ConfigError(`${priceSyntax}; ${id} needs a number of at least 0 for ${name}`);
      };
      return [id, { in: of("in"), out: of("out"), cached: of("cached", price?.in) }];
    }),
  );
}

/** The key that encrypts other keys: 32 bytes as base64 or hex; empty: none. */
export function secretSetting(value: string): Uint8Array | null {
  if (value === "") return null;
  const bytes = /^[0-9a-f]{64}$/i.test(value)
    ? Buffer.from(value, "hex")
    : /^[A-Za-z0-9+/_-]{43}=?$/.test(value)
      ? Buffer.from(value, "base64")
      : null;
  if (bytes?.length !== 32) throw new ConfigError("32 bytes as base64 or hex; openssl rand -base64 32 makes them");
  return new Uint8Array(bytes);
}

/** An address without a slash at its end. Throws ConfigError. */
export function modelAddress(provider: ModelProvider, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new ConfigError("an http or https address without user, query or fragment, as in http://127.0.0.1:11434/v1");
  const base = url.origin + url.pathname.replace(/\/+$/, "");
  // Anthropic's own programs write its address without the version, others with it.
  return provider === "anthropic" && !/\/v\d+$/.test(base) ? `${base}/v1` : base;
}

/** A key as it can be sent in a header, blanks around it removed. Throws ConfigError, which does not quote it. */
export function modelKey(value: string): string {
  const key = value.trim();
  if (!/^[\x21-\x7e]{1,2000}$/.test(key)) throw new ConfigError("a key: one line of ASCII characters without blanks");
  return key;
}

/** Shorter keys are words such as `ollama`, which stand in texts for other reasons. */
export const minSecretLength = 12;

/** The keys of the environment that must not stand in anything that is stored, logged or answered. */
export const secretsIn = (places: Readonly<Record<ModelProvider, ModelPlace>>): string[] =>
  Object.values(places).flatMap(({ key }) => (key !== null && key.length >= minSecretLength ? [key] : []));

/** What the environment says about each provider. Throws ConfigError that names the variable. */
export function readModelPlaces(env: Record<string, string | undefined>): Record<ModelProvider, ModelPlace> {
  const read = <T>(name: string, parse: (value: string) => T): T | null => {
    try {
      return env[name] ? parse(env[name]) : null;
    } catch (error) {
      throw error instanceof ConfigError ? new ConfigError(`${name} must be ${error.message}`) : error;
    }
  };
  const place = (provider: ModelProvider): ModelPlace => {
    const { key, baseUrl, fallback } = providerVariables[provider];
    return { key: read(key, modelKey), baseUrl: read(baseUrl, (value) => modelAddress(provider, value)) ?? fallback };
  };
  return {
    anthropic: place("anthropic"),
    openai: place("openai"),
    google: place("google"),
    "openai-compatible": place("openai-compatible"),
  };
}
