import { ConfigError } from "../errors.ts";
import { parseSetting, readJsonSetting, splitList, toPlainUrl } from "./setting.ts";

/** Model providers, each with its own protocol. `openai-compatible`: any server with an OpenAI chat completions API. */
export const modelProviders = ["anthropic", "openai", "google", "openai-compatible"] as const;
export type ModelProvider = (typeof modelProviders)[number];

/** The price of a model in USD per million tokens. */
type Price = {
  in: number;
  out: number;
  /** The price of input tokens that are read from the provider's cache. */
  cached: number;
  /** The price of input tokens that are written to the cache. If absent, the provider's usual price applies. */
  cacheWritten?: number;
  /** The price of input tokens that are kept in the cache for an hour. If absent, the provider's usual price applies. */
  cacheWrittenForHour?: number;
};

/** Prices that the operator has set, by `provider/model`. */
export type Prices = Readonly<Record<string, Price>>;

/** API key and base URL (without a trailing slash) of a provider; null: not set. */
type ModelEndpoint = { key: string | null; baseUrl: string | null };

/** The environment variables that each provider's own SDK reads, and its default base URL. */
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

/** Splits `provider/model`; null if it is invalid. Compatible servers may have model names with slashes. */
export function parseModelId(id: string): { provider: ModelProvider; name: string } | null {
  const provider = modelProviders.find((each) => id.startsWith(`${each}/`));
  if (provider === undefined) return null;
  const name = id.slice(provider.length + 1);
  const pattern = provider === "openai-compatible" ? /^[\w.:@+-]+(\/[\w.:@+-]+)*$/ : /^[\w.:@+-]+$/;
  return name.length <= 200 && pattern.test(name) ? { provider, name } : null;
}

export const modelSyntax = `a provider and a model, such as anthropic/claude-opus-4-8 (providers: ${modelProviders.join(", ")})`;

/** Parses a setting that names a model; null if it is empty. */
export function parseModelSetting(value: string): string | null {
  if (value === "") return null;
  if (!parseModelId(value)) throw new ConfigError(modelSyntax);
  return value;
}

/** Parses a setting that lists models in order of preference. */
export const parseModelList = (value: string): string[] =>
  splitList(value).flatMap((item) => parseModelSetting(item) ?? []);

const priceSyntax =
  'JSON or the path of a JSON file, in USD per million tokens, such as {"openai-compatible/llama3": {"in": 0.2, "out": 0.6, "cached": 0.05}}';

/** Parses prices from JSON or from a file. `cached` defaults to `in`. */
export function parsePrices(value: string): Prices {
  if (value === "") return {};
  const prices = readJsonSetting(value, "{", priceSyntax);
  if (prices === null || typeof prices !== "object" || Array.isArray(prices)) throw new ConfigError(priceSyntax);
  return Object.fromEntries(
    Object.entries(prices).map(([id, price]) => {
      if (!parseModelId(id)) throw new ConfigError(`${priceSyntax}: ${JSON.stringify(id)} is not ${modelSyntax}`);
      return [id, parsePrice(id, price ?? {})];
    }),
  );
}

/** Checks the price of the model `id`. Throws ConfigError. */
function parsePrice(id: string, price: Partial<Record<keyof Price, unknown>>): Price {
  const readUsd = (name: keyof Price): number => {
    const usd = price[name];
    if (typeof usd === "number" && Number.isFinite(usd) && usd >= 0) return usd;
    throw new ConfigError(`${priceSyntax}: ${id} needs a non-negative number for ${name}`);
  };
  const input = readUsd("in");
  return {
    in: input,
    out: readUsd("out"),
    cached: price.cached == null ? input : readUsd("cached"),
    ...(price.cacheWritten !== undefined && { cacheWritten: readUsd("cacheWritten") }),
    ...(price.cacheWrittenForHour !== undefined && { cacheWrittenForHour: readUsd("cacheWrittenForHour") }),
  };
}

/** Parses the key that encrypts other keys: 32 bytes as base64 or hex; null if it is empty. */
export function parseSecretKey(value: string): Uint8Array | null {
  if (value === "") return null;
  if (/^[0-9a-f]{64}$/i.test(value)) return new Uint8Array(Buffer.from(value, "hex"));
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(value)) return new Uint8Array(Buffer.from(value, "base64"));
  throw new ConfigError("32 bytes as base64 or hex. Generate a key with: openssl rand -base64 32");
}

/** Parses the base URL of a provider and removes a trailing slash. Throws ConfigError. */
export function parseModelBaseUrl(provider: ModelProvider, value: string): string {
  const base = toPlainUrl(value);
  if (base === null)
    throw new ConfigError(
      "an http or https URL without user name, query or fragment, such as http://127.0.0.1:11434/v1",
    );
  // Anthropic's SDK expects the URL without the version. Other clients expect it with the version.
  return provider === "anthropic" && !/\/v\d+$/.test(base) ? `${base}/v1` : base;
}

/** Trims an API key, and checks that it can be sent in a header. Throws ConfigError that doesn't quote the key. */
export function parseModelKey(value: string): string {
  const key = value.trim();
  if (!/^[\x21-\x7e]{1,2000}$/.test(key)) throw new ConfigError("a single line of ASCII characters without spaces");
  return key;
}

/** Shorter keys aren't redacted, because they are often words such as `ollama`, which may occur everywhere. */
export const minSecretLength = 12;

/** API keys from the environment, which must be redacted from everything that is stored, logged or sent. */
export const secretsIn = (endpoints: Readonly<Record<ModelProvider, ModelEndpoint>>): string[] =>
  Object.values(endpoints).flatMap(({ key }) => (key !== null && key.length >= minSecretLength ? [key] : []));

/** Reads the key and the base URL of each provider from the environment. Throws ConfigError that names the variable. */
export function readModelEndpoints(env: Record<string, string | undefined>): Record<ModelProvider, ModelEndpoint> {
  const read = <T>(name: string, parse: (value: string) => T): T | null =>
    env[name] ? parseSetting({ name, parse, isSecret: true }, env[name]) : null;
  const endpoints = modelProviders.map((provider): [ModelProvider, ModelEndpoint] => {
    const { key, baseUrl, fallback } = providerVariables[provider];
    const url = read(baseUrl, (value) => parseModelBaseUrl(provider, value));
    return [provider, { key: read(key, parseModelKey), baseUrl: url ?? fallback }];
  });
  return Object.fromEntries(endpoints) as Record<ModelProvider, ModelEndpoint>;
}
