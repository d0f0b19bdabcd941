import type { AllowRule } from "../../config/allow-rules.ts";
import type { ModelProvider, Prices } from "../../config/model-settings.ts";
import type { Usage } from "./wire.ts";

/** A model that a run may call: its base URL, API key and configured prices. */
export type ModelAccess = {
  /** `provider/model`. */
  id: string;
  provider: ModelProvider;
  name: string;
  baseUrl: string;
  /** null: the server needs none. */
  key: string | null;
  prices: Prices;
  /** The private addresses that the operator allows, if an organization set the base URL; null if the operator did. */
  allow: readonly AllowRule[] | null;
};

/** The price list, loaded on first use because loading is slow. */
const priceList = (): typeof import("@pydantic/genai-prices") => require("@pydantic/genai-prices");

/**
 * The cost of a call in USD, by the model that answered; null if unknown. Configured prices take precedence, for the
 * model that answered or the one requested.
 */
export function priceOf(usage: Usage, answeringModel: string | null, access: ModelAccess): number | null {
  const configuredPrices = access.prices[`${access.provider}/${answeringModel}`] ?? access.prices[access.id];
  if (configuredPrices) {
    const { input, cached, output } = usage;
    return (
      ((input - cached) * configuredPrices.in + cached * configuredPrices.cached + output * configuredPrices.out) / 1e6
    );
  }
  const provider = findPricedProvider(access);
  if (!provider) return null;
  try {
    const price = priceList().calcPrice(
      {
        input_tokens: usage.input,
        cache_read_tokens: usage.cached,
        cache_write_tokens: usage.cacheWritten,
        ...(usage.cacheWrittenForHour > 0 ? { cache_write_1h_tokens: usage.cacheWrittenForHour } : {}),
        output_tokens: usage.output,
      },
      answeringModel ?? access.name,
      { provider },
    );
    return price?.total_price ?? null;
  } catch {
    // Inconsistent numbers, such as more cached tokens than tokens.
    return null;
  }
}

const oneToken: Usage = { input: 1, cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, output: 1, reasoning: 0 };

/** Whether a model's price is known before its first call. */
export const hasPrice = (access: ModelAccess): boolean => priceOf(oneToken, null, access) !== null;

/** How many output tokens an amount of USD pays for; Infinity if they are free or their price is unknown. */
export function affordableOutput(usd: number, access: ModelAccess): number {
  const tokens = 1000;
  const price = priceOf({ ...oneToken, input: 0, output: tokens }, null, access);
  return price ? Math.floor((usd / price) * tokens) : Number.POSITIVE_INFINITY;
}

/**
 * A compatible server has known prices only if it is a known provider's. Model names prove nothing, because anyone can
 * serve a llama3.
 */
function findPricedProvider({ provider, baseUrl }: ModelAccess) {
  if (provider === "openai-compatible") return priceList().findProvider({ providerApiUrl: baseUrl });
  return priceList().findProvider({ providerId: provider });
}
