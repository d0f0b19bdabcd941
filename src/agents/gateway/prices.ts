import type { ModelProvider, Prices } from "../../config/model-settings.ts";
import type { Usage } from "./wire.ts";

/** A model that a run may call: where it answers, with which key, and what the operator said that it costs. */
export type ModelAccess = {
  /** `provider/model`. */
  id: string;
  provider: ModelProvider;
  name: string;
  baseUrl: string;
  /** null: the server asks for none. */
  key: string | null;
  prices: Prices;
};

/** The price list, loaded on first use because loading is slow. */
const known = (): typeof import("@pydantic/genai-prices") => require("@pydantic/genai-prices");

/**
 * What a call cost in USD, by the model that answered; null if nobody says what it costs. What the operator stated goes first, for the model
 * that answered or the one that was asked for.
 */
export function priceOf(usage: Usage, answered: string | null, access: ModelAccess): number | null {
  const stated = access.prices[`${access.provider}/${answered}`] ?? access.prices[access.id];
  if (stated) {
    const { input, cached, output } = usage;
    return ((input - cached) * stated.in + cached * stated.cached + output * stated.out) / 1e6;
  }
  const provider = pricedProvider(access);
  if (!provider) return null;
  try {
    const price = known().calcPrice(
      {
        input_tokens: usage.input,
        cache_read_tokens: usage.cached,
        cache_write_tokens: usage.cacheWritten,
        ...(usage.cacheWrittenForHour > 0 ? { cache_write_1h_tokens: usage.cacheWrittenForHour } : {}),
        output_tokens: usage.output,
      },
      answered ?? access.name,
      { provider },
    );
    return price?.total_price ?? null;
  } catch {
    // Figures that contradict each other, as in more cached tokens than tokens.
    return null;
  }
}

const oneToken: Usage = { input: 1, cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, output: 1, reasoning: 0 };

/** Whether a model has a known price, as far as known before it answers. */
export const hasPrice = (access: ModelAccess): boolean => priceOf(oneToken, null, access) !== null;

/** How many tokens of output an amount of USD pays for; no end of them where they cost nothing, or nobody says what. */
export function outputFor(usd: number, access: ModelAccess): number {
  const tokens = 1000;
  const price = priceOf({ ...oneToken, input: 0, output: tokens }, null, access);
  return price ? Math.floor((usd / price) * tokens) : Number.POSITIVE_INFINITY;
}

/** A compatible server has prices if it is a known provider's; names alone say nothing, for anyone may serve a llama3. */
function pricedProvider({ provider, baseUrl }: ModelAccess) {
  if (provider === "openai-compatible") return known().findProvider({ providerApiUrl: baseUrl });
  return known().findProvider({ providerId: provider });
}
