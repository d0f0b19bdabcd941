import { and, eq } from "drizzle-orm";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import {
  type ModelProvider,
  minSecretLength,
  modelAddress,
  modelKey,
  modelProviders,
  modelSyntax,
  parseModelId,
  providerVariables,
  secretsIn,
} from "../config/model-settings.ts";
import type { Context, OrgId } from "../context.ts";
import { modelKeys } from "../db/tables/keys.ts";
import { AppError, badRequest, ConfigError, notFound } from "../errors.ts";
import { objectionTo } from "../net/upstream.ts";
import { seal, unseal } from "./seal.ts";

/** A model provider of an organization. `key` is its last four characters, or why it can't be used. */
export type ModelSource = {
  provider: ModelProvider;
  source: "organization" | "environment" | "none";
  key: string;
  baseUrl: string | null;
};

export type Models = ReturnType<typeof createModels>;

/** Which models an organization can call, and with which keys: its own, or else those from the environment. */
export function createModels({ db, config, now }: Pick<Context, "db" | "config" | "now">) {
  const rowOf = (org: OrgId, provider: ModelProvider) => {
    const own = and(eq(modelKeys.orgId, org), eq(modelKeys.provider, provider));
    return db.select().from(modelKeys).where(own).get();
  };
  const placeOf = (org: string, provider: ModelProvider) => `${org} ${provider}`;

  /** The key of a row; an AppError if it can't be decrypted. */
  function keyOf(row: typeof modelKeys.$inferSelect): string | AppError {
    const { orgId, provider, sealed } = row;
    const key = config.secretKey ? unseal(sealed, config.secretKey, placeOf(orgId, provider)) : null;
    if (key !== null) return key;
    const why = config.secretKey
      ? "was encrypted with a different EVALD_SECRET_KEY"
      : "cannot be decrypted without EVALD_SECRET_KEY";
    return new AppError(
      "conflict",
      `The organization's API key for ${provider} ${why}. Restore that setting, or store the key again with evald model set-key ${provider}.`,
    );
  }

  /** null: neither the organization nor the environment configures the provider. */
  function accessOf(org: OrgId, provider: ModelProvider) {
    const row = rowOf(org, provider);
    if (row) return { source: "organization" as const, baseUrl: row.baseUrl, key: keyOf(row) };
    const { key, baseUrl } = config.modelPlaces[provider];
    if (baseUrl === null || (key === null && provider !== "openai-compatible")) return null;
    return { source: "environment" as const, baseUrl, key: key ?? "" };
  }

  return {
    /** Every provider, with the source of its key. */
    listModels: (org: OrgId): ModelSource[] =>
      modelProviders.map((provider) => {
        const access = accessOf(org, provider);
        if (!access) return { provider, source: "none", key: "", baseUrl: config.modelPlaces[provider].baseUrl };
        const { source, baseUrl, key } = access;
        return { provider, source, baseUrl, key: key instanceof AppError ? key.detail : toDisplay(key) };
      }),

    /** How to call a model. Throws bad_request for an invalid name or a missing key, and conflict if the key can't be decrypted. */
    getModel(org: OrgId, id: string): ModelAccess {
      const named = parseModelId(id);
      if (!named) throw badRequest(`Invalid model ${JSON.stringify(id)}. Use ${modelSyntax}.`);
      const { provider, name } = named;
      const access = accessOf(org, provider);
      if (!access) throw badRequest(`No API key for ${id}. ${remedyFor(provider)}`);
      if (access.key instanceof AppError) throw access.key;
      const isPreset = access.source === "environment" || access.baseUrl === providerVariables[provider].fallback;
      const allow = isPreset ? null : config.allowPrivate;
      return {
        id,
        provider,
        name,
        baseUrl: access.baseUrl,
        key: access.key || null,
        prices: config.modelPrices,
        allow,
      };
    },

    /** Stores an organization's own key, encrypted. Throws bad_request for an invalid key or base URL. */
    setKey(org: OrgId, provider: ModelProvider, key: string, baseUrl?: string): ModelSource {
      if (!config.secretKey)
        throw badRequest("Set EVALD_SECRET_KEY before storing API keys. Generate one with: openssl rand -base64 32");
      const address = checked("base URL", () =>
        baseUrl === undefined ? providerVariables[provider].fallback : modelAddress(provider, baseUrl),
      );
      if (address === null)
        throw badRequest(`${provider} needs a base URL, such as --base-url https://openrouter.ai/api/v1.`);
      const objection = objectionTo(address, config.allowPrivate);
      if (objection) throw badRequest(`Invalid base URL: ${objection}.`);
      const bare = provider === "openai-compatible" && key.trim() === "" ? "" : checked("key", () => modelKey(key));
      const sealed = seal(bare, config.secretKey, placeOf(org, provider));
      const row = { baseUrl: address, sealed, createdAt: now() };
      db.insert(modelKeys)
        .values({ orgId: org, provider, ...row })
        .onConflictDoUpdate({ target: [modelKeys.orgId, modelKeys.provider], set: row })
        .run();
      return { provider, source: "organization", key: toDisplay(bare), baseUrl: address };
    },

    /** Throws not_found. */
    removeKey(org: OrgId, provider: ModelProvider): void {
      const own = and(eq(modelKeys.orgId, org), eq(modelKeys.provider, provider));
      const gone = db.delete(modelKeys).where(own).returning({ provider: modelKeys.provider }).all();
      if (gone.length === 0) throw notFound(`The organization has no API key for ${provider}.`);
    },

    /** All secrets used by an organization's runs. They must not appear in anything that is stored, logged or returned. */
    secretsOf(org: OrgId): string[] {
      const own = db.select().from(modelKeys).where(eq(modelKeys.orgId, org)).all().map(keyOf);
      const readable = own.filter((key) => typeof key === "string" && key.length >= minSecretLength) as string[];
      return [...readable, ...secretsIn(config.modelPlaces)];
    },
  };
}

const toDisplay = (key: string): string =>
  key.length >= minSecretLength ? `…${key.slice(-4)}` : key ? "set" : "no key";

function remedyFor(provider: ModelProvider): string {
  const { key, baseUrl, fallback } = providerVariables[provider];
  return `Set ${fallback === null ? baseUrl : key} in the environment of the service, or store a key for the organization with evald model set-key ${provider}.`;
}

function checked<T>(what: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof ConfigError ? badRequest(`Invalid ${what}: must be ${error.message}.`) : error;
  }
}
