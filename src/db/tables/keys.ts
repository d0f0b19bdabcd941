import { sql } from "drizzle-orm";
import { blob, check, foreignKey, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { modelProviders } from "../../config/model-settings.ts";
import { boolean, json, oneOf, timestamp } from "./columns.ts";
import { orgIdColumn, orgs } from "./orgs.ts";

/** Only the SHA-256 of a key is stored; `display` is its first ten and last four characters. */
export const apiKeys = sqliteTable(
  "api_keys",
  {
    hash: blob({ mode: "buffer" }).primaryKey(),
    id: text().notNull().unique(),
    orgId: orgIdColumn(),
    name: text().notNull(),
    display: text().notNull(),
    /** null: all of them. */
    scopes: json<string[]>("scopes"),
    createdAt: timestamp("created_at").notNull(),
    expiresAt: timestamp("expires_at"),
    revokedAt: timestamp("revoked_at"),
    lastUsedAt: timestamp("last_used_at"),
    /** The person who created it; null: the operator, or a version of evald that didn't record it. */
    createdBy: text("created_by"),
    /** The trust whose job exchanged an ID token for it; null: created by hand. */
    trustId: text("trust_id"),
    /** For clients that were not written for evald: errors contain their detail, runs supersede others by default, and a passed bar has a grade. */
    usesCompatibilityMode: boolean("uses_compatibility_mode").notNull().default(false),
  },
  (table) => [
    index("api_keys_newest").on(table.orgId, table.id),
    check("api_keys_hash", sql`length(${table.hash}) = 32`),
  ],
);

export const ciProviders = ["github", "gitlab"] as const;

/** CI jobs that may exchange an ID token for an API key. */
export const trusts = sqliteTable(
  "trusts",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    provider: text({ enum: ciProviders }).notNull(),
    issuer: text().notNull(),
    repository: text().notNull(),
    /** The ID of the repository. Names can be given away, but IDs can't. null: the ID of the first job. */
    repositoryId: text("repository_id"),
    /** The ref, which may end with `*`. null: any. */
    ref: text(),
    environment: text(),
    /** The scopes of the keys that it gives. */
    scopes: json<string[]>("scopes").notNull(),
    minutes: integer().notNull(),
    createdAt: timestamp("created_at").notNull(),
    /** The person who created it; null: the operator. */
    createdBy: text("created_by"),
  },
  (table) => [
    index("trusts_of_org").on(table.orgId, table.id),
    foreignKey({ name: "trusts_org", columns: [table.orgId], foreignColumns: [orgs.id] }),
  ],
);

/** ID tokens that were exchanged, until they expire: each works once. */
export const usedTokens = sqliteTable(
  "used_tokens",
  { issuer: text().notNull(), jti: text().notNull(), expiresAt: timestamp("expires_at").notNull() },
  (table) => [primaryKey({ columns: [table.issuer, table.jti] }), index("used_tokens_expiry").on(table.expiresAt)],
);

/** API keys of model providers, one per organization and provider, encrypted. */
export const modelKeys = sqliteTable(
  "model_keys",
  {
    orgId: orgIdColumn(),
    provider: text({ enum: modelProviders }).notNull(),
    baseUrl: text("base_url").notNull(),
    /** 12 bytes of nonce, the encrypted key, and 16 bytes of authentication tag. */
    sealed: blob({ mode: "buffer" }).notNull(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.provider] }),
    check("model_keys_provider", oneOf(table.provider, modelProviders)),
  ],
);

/** Logins of people for coding agents, one per organization and agent, encrypted. */
export const agentLogins = sqliteTable(
  "agent_logins",
  {
    orgId: orgIdColumn(),
    agent: text().notNull(),
    /** 12 bytes of nonce, the encrypted file, and 16 bytes of authentication tag. */
    sealed: blob({ mode: "buffer" }).notNull(),
    /** null: the file does not say when it expires. */
    expiresAt: timestamp("expires_at"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.agent] })],
);

/** Secrets of success checks, encrypted. */
export const checkSecrets = sqliteTable(
  "check_secrets",
  {
    orgId: orgIdColumn(),
    name: text().notNull(),
    /** 12 bytes of nonce, the encrypted value, and 16 bytes of authentication tag. */
    sealed: blob({ mode: "buffer" }).notNull(),
    /** The only hosts that may get it; null: the host of each check that names it. */
    hosts: json<string[]>("hosts"),
    updatedAt: timestamp("updated_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.name] })],
);

/** Access of workers to Redis. They belong to the service, not to an organization. Only the SHA-256 of a password is stored. */
export const workerCredentials = sqliteTable(
  "worker_credentials",
  {
    name: text().primaryKey(),
    digest: blob({ mode: "buffer" }).notNull(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [check("worker_credentials_digest", sql`length(${table.digest}) = 32`)],
);
