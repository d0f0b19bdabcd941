import type { AllowRule } from "../../config/allow-rules.ts";
import type { ModelProvider, Prices } from "../../config/model-settings.ts";
import { loadPrices } from "../../lazy-packages.ts";
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
  /** The private addresses that the operator allows, if an organization set the base URL; null if the operator set it. */
  allow: readonly AllowRule[] | null;
};

/** What Anthropic charges for input that it writes to its cache, relative to other input (docs.claude.com, "Prompt caching"). */
const anthropicCacheWrites = { fiveMinutes: 1.25, hour: 2 };

/**
 * The cost of a call in USD; null if unknown. It depends on the model that answered. Configured prices take precedence, whether for the model that
 * answered or for the requested one. Input counts as at least what was read from and written to the cache.
 */
export function priceOf(usage: Usage, answeringModel: string | null, access: ModelAccess): number | null {
  const { cached, cacheWritten, output } = usage;
  const input = Math.max(usage.input, cached + cacheWritten);
  const writtenForHour = Math.min(usage.cacheWrittenForHour, cacheWritten);
  const configuredPrice = access.prices[`${access.provider}/${answeringModel}`] ?? access.prices[access.id];
  if (configuredPrice) {
    // In USD per million tokens.
    const price = withCacheWrites(configuredPrice, access.provider);
    const microUsd =
      (input - cached - cacheWritten) * price.in +
      cached * price.cached +
      (cacheWritten - writtenForHour) * price.cacheWritten +
      writtenForHour * price.cacheWrittenForHour +
      output * price.out;
    return microUsd / 1e6;
  }
  const provider = findPricedProvider(access);
  if (!provider) return null;
  try {
    const price = loadPrices().calcPrice(
      {
        input_tokens: input,
        cache_read_tokens: cached,
        cache_write_tokens: cacheWritten,
        ...(writtenForHour > 0 ? { cache_write_1h_tokens: writtenForHour } : {}),
        output_tokens: output,
      },
      answeringModel ?? access.name,
      { provider },
    );
    return price?.total_price ?? null;
  } catch {
    return null;
  }
}

/** A configured price with prices of cache writes. By default, these are the provider's. */
function withCacheWrites(price: ModelAccess["prices"][string], provider: ModelProvider) {
  const factors = provider === "anthropic" ? anthropicCacheWrites : { fiveMinutes: 1, hour: 1 };
  const cacheWritten = price.cacheWritten ?? price.in * factors.fiveMinutes;
  const hourFactor = factors.hour / factors.fiveMinutes;
  return { ...price, cacheWritten, cacheWrittenForHour: price.cacheWrittenForHour ?? cacheWritten * hourFactor };
}

const noTokens: Usage = { input: 0, cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, output: 0, reasoning: 0 };

/** The most that a call with this many tokens costs in USD, wherever its input comes from; null if the price is unknown. */
export function maxPriceOf(input: number, output: number, access: ModelAccess): number | null {
  const uncached = { ...noTokens, input, output };
  const usages = [
    uncached,
    { ...uncached, cached: input },
    { ...uncached, cacheWritten: input },
    { ...uncached, cacheWritten: input, cacheWrittenForHour: input },
  ];
  const usds = usages.map((usage) => priceOf(usage, null, access));
  return usds.every((usd) => usd !== null) ? Math.max(...usds) : null;
}

/** Whether a model's price is known before its first call. */
export const hasPrice = (access: ModelAccess): boolean =>
  priceOf({ ...noTokens, input: 1, output: 1 }, null, access) !== null;

/**
 * How many output tokens can be bought for an amount of USD. If they are free or their price is unknown, the number is infinite, with the sign of the
 * amount.
 */
export function affordableOutput(usd: number, access: ModelAccess): number {
  const sampleTokens = 1000;
  const sampleUsd = priceOf({ ...noTokens, output: sampleTokens }, null, access);
  if (!sampleUsd) return usd < 0 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Math.floor((usd / sampleUsd) * sampleTokens);
}

/**
 * The provider whose prices apply. For a compatible server, this is only a known provider with the server's base URL. The name of a model proves
 * nothing, because anyone can serve a llama3.
 */
function findPricedProvider({ provider, baseUrl }: ModelAccess) {
  if (provider === "openai-compatible") return loadPrices().findProvider({ providerApiUrl: baseUrl });
  return loadPrices().findProvider({ providerId: provider });
}
