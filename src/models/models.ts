import { and, eq } from "drizzle-orm";
import { createGateway } from "../agents/gateway/gateway.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import {
  type ModelProvider,
  minSecretLength,
  modelProviders,
  modelSyntax,
  parseModelBaseUrl,
  parseModelId,
  parseModelKey,
  providerVariables,
  secretsIn,
} from "../config/model-settings.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import { transaction } from "../db/open.ts";
import { modelKeys } from "../db/tables/keys.ts";
import { AppError, badRequest, ConfigError, notFound } from "../errors.ts";
import { objectionToUrl } from "../net/upstream.ts";
import { listLoginSecrets } from "./logins.ts";
import { seal, unseal } from "./seal.ts";

/** The gateway through which agents and judges call models. */
export const gatewayOf = perContext(({ now }) => createGateway({ now }));

/**
 * A model provider of an organization. `key`: what is shown of the key, such as its last four characters, or why it can't be used; empty without a
 * key.
 */
export type ModelSource = {
  provider: ModelProvider;
  source: "organization" | "environment" | "none";
  key: string;
  baseUrl: string | null;
};

type ModelKeyRow = typeof modelKeys.$inferSelect;

/** How a provider is reached: its base URL and key (empty: it needs none), or why the key can't be used. */
type ProviderAccess = { source: "organization" | "environment"; baseUrl: string; key: string | AppError };

/** Every provider, with the source of its key. */
export const listModels = (ctx: Context, org: OrgId): ModelSource[] =>
  modelProviders.map((provider) => {
    const access = findAccess(ctx, org, provider);
    if (!access) return { provider, source: "none", key: "", baseUrl: ctx.config.modelEndpoints[provider].baseUrl };
    const { source, baseUrl, key } = access;
    return { provider, source, baseUrl, key: key instanceof AppError ? key.detail : toDisplay(key) };
  });

/**
 * How an organization calls a model: with its own key, else with the key from the environment. Throws bad_request for an invalid name or a missing
 * key, and conflict if the key can't be decrypted.
 */
export function getModel(ctx: Context, org: OrgId, id: string): ModelAccess {
  const model = parseModelId(id);
  if (!model) throw badRequest(`Invalid model ${JSON.stringify(id)}. Use ${modelSyntax}.`);
  const { provider, name } = model;
  const access = findAccess(ctx, org, provider);
  if (!access) throw badRequest(`No API key for ${id}. ${remedyFor(provider)}`);
  const { source, baseUrl, key } = access;
  if (key instanceof AppError) throw key;
  // A base URL that the organization chose itself may lead only to addresses that runs may reach.
  const isOfOperator = source === "environment" || baseUrl === providerVariables[provider].fallback;
  const { modelPrices: prices, allowPrivate } = ctx.config;
  return { id, provider, name, baseUrl, key: key || null, prices, allow: isOfOperator ? null : allowPrivate };
}

/** A model that an agent with a login calls itself. Throws bad_request for an invalid name. */
export function getModelOfLogin({ config }: Context, id: string): ModelAccess {
  const model = parseModelId(id);
  if (!model) throw badRequest(`Invalid model ${JSON.stringify(id)}. Use ${modelSyntax}.`);
  return { id, ...model, baseUrl: "", key: null, prices: config.modelPrices, allow: null };
}

/** Stores an organization's own key, encrypted. Throws bad_request for an invalid key or base URL. */
export function setModelKey(
  ctx: Context,
  org: OrgId,
  provider: ModelProvider,
  key: string,
  baseUrl?: string,
): ModelSource {
  const { secretKey, allowPrivate } = ctx.config;
  if (!secretKey)
    throw badRequest("Set EVALD_SECRET_KEY before storing API keys. Generate one with: openssl rand -base64 32");
  const storedUrl = parseInput("base URL", () =>
    baseUrl === undefined ? providerVariables[provider].fallback : parseModelBaseUrl(provider, baseUrl),
  );
  if (storedUrl === null)
    throw badRequest(`${provider} needs a base URL, such as --base-url https://openrouter.ai/api/v1.`);
  const objection = objectionToUrl(storedUrl, allowPrivate);
  if (objection) throw badRequest(`Invalid base URL: ${objection}.`);
  const isEmpty = provider === "openai-compatible" && key.trim() === "";
  const parsedKey = isEmpty ? "" : parseInput("key", () => parseModelKey(key));
  const sealed = seal(parsedKey, secretKey, sealContext(org, provider));
  const row = { baseUrl: storedUrl, sealed, createdAt: ctx.now() };
  transaction(ctx.db, (tx) => {
    tx.insert(modelKeys)
      .values({ orgId: org, provider, ...row })
      .onConflictDoUpdate({ target: [modelKeys.orgId, modelKeys.provider], set: row })
      .run();
    recordAudit(ctx, org, "model_key.stored", { name: provider }, changesOf({}, { baseUrl: storedUrl }));
  });
  return { provider, source: "organization", key: toDisplay(parsedKey), baseUrl: storedUrl };
}

/** Throws not_found. */
export const removeModelKey = (ctx: Context, org: OrgId, provider: ModelProvider): void =>
  transaction(ctx.db, (tx) => {
    const [removed] = tx.delete(modelKeys).where(keyOfProvider(org, provider)).returning().all();
    if (!removed) throw notFound(`The organization has no API key for ${provider}.`);
    recordAudit(ctx, org, "model_key.removed", { name: provider });
  });

/** All secrets used by an organization's runs. They must not appear in anything that is stored, logged or returned. */
export function listModelSecrets(ctx: Context, org: OrgId): string[] {
  const rows = ctx.db.select().from(modelKeys).where(eq(modelKeys.orgId, org)).all();
  const keys = rows.map((row) => unsealKey(ctx, row)).filter((key) => typeof key === "string");
  return [
    ...keys.filter((key) => key.length >= minSecretLength),
    ...secretsIn(ctx.config.modelEndpoints),
    ...listLoginSecrets(ctx, org),
  ];
}

/** The number of stored keys that EVALD_SECRET_KEY doesn't decrypt. */
export const countUnreadableKeys = (ctx: Context, org?: OrgId): number =>
  ctx.db
    .select()
    .from(modelKeys)
    .where(org === undefined ? undefined : eq(modelKeys.orgId, org))
    .all()
    .filter((row) => typeof unsealKey(ctx, row) !== "string").length;

/** null: neither the organization nor the environment configures the provider. */
function findAccess(ctx: Context, org: OrgId, provider: ModelProvider): ProviderAccess | null {
  const row = ctx.db.select().from(modelKeys).where(keyOfProvider(org, provider)).get();
  if (row) return { source: "organization", baseUrl: row.baseUrl, key: unsealKey(ctx, row) };
  const { key, baseUrl } = ctx.config.modelEndpoints[provider];
  if (baseUrl === null || (key === null && provider !== "openai-compatible")) return null;
  return { source: "environment", baseUrl, key: key ?? "" };
}

/** The key of a row, or an AppError if it can't be decrypted. */
function unsealKey({ config: { secretKey } }: Context, { orgId, provider, sealed }: ModelKeyRow): string | AppError {
  const key = secretKey ? unseal(sealed, secretKey, sealContext(orgId, provider)) : null;
  if (key !== null) return key;
  const reason = secretKey
    ? "was encrypted with a different EVALD_SECRET_KEY"
    : "cannot be decrypted without EVALD_SECRET_KEY";
  return new AppError(
    "conflict",
    `The organization's API key for ${provider} ${reason}. Restore that setting, or store the key again with evald model set-key ${provider}.`,
  );
}

const keyOfProvider = (org: OrgId, provider: ModelProvider) =>
  and(eq(modelKeys.orgId, org), eq(modelKeys.provider, provider));

/** What a sealed key belongs to. */
const sealContext = (org: string, provider: ModelProvider) => `${org} ${provider}`;

function toDisplay(key: string): string {
  if (key === "") return "no key";
  return key.length >= minSecretLength ? `…${key.slice(-4)}` : "set";
}

function remedyFor(provider: ModelProvider): string {
  const { key, baseUrl, fallback } = providerVariables[provider];
  return `Set ${fallback === null ? baseUrl : key} in the environment of the service, or store a key for the organization with evald model set-key ${provider}.`;
}

/** Runs a parser of settings. Throws bad_request for a value that it refuses. */
function parseInput<T>(what: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof ConfigError ? badRequest(`Invalid ${what}: must be ${error.message}.`) : error;
  }
}
