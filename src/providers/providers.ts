import { and, desc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { providers } from "../db/tables/prompts.ts";
import { notFound } from "../errors.ts";
import { checkHttpUrl, toIso, toName } from "../schema.ts";
import type { Provider, ProviderInput, ProviderPatch } from "./schema.ts";

type ProviderRow = typeof providers.$inferSelect;

/** Throws bad_request for a blank name or a URL that is not http(s). */
export function createProvider(ctx: Context, org: OrgId, input: ProviderInput): Provider {
  const { name, docsUrl = null, productUrl = null } = input;
  const createdAt = ctx.now();
  const row = checkRow({ id: ctx.newId(createdAt), orgId: org, name, docsUrl, productUrl, createdAt });
  ctx.db.insert(providers).values(row).run();
  return toProvider(row);
}

/** Omitted fields keep their values. Throws not_found, and bad_request like `createProvider`. */
export function updateProvider(ctx: Context, org: OrgId, id: string, patch: ProviderPatch): Provider {
  const row = checkRow({ ...getProviderRow(ctx, org, id), ...patch });
  ctx.db.update(providers).set(row).where(eq(providers.id, row.id)).run();
  return toProvider(row);
}

/** Throws not_found. */
export const getProvider = (ctx: Context, org: OrgId, id: string): Provider => toProvider(getProviderRow(ctx, org, id));

/** Newest first. */
export const listProviders = ({ db }: Context, org: OrgId): Provider[] =>
  db.select().from(providers).where(eq(providers.orgId, org)).orderBy(desc(providers.id)).all().map(toProvider);

function getProviderRow({ db }: Context, org: OrgId, id: string): ProviderRow {
  const where = and(eq(providers.orgId, org), eq(providers.id, id.toLowerCase()));
  const row = db.select().from(providers).where(where).get();
  if (!row) throw notFound(`No provider has the ID ${id}.`);
  return row;
}

function checkRow(row: ProviderRow): ProviderRow {
  const { docsUrl, productUrl } = row;
  for (const [field, url] of Object.entries({ docsUrl, productUrl })) if (url !== null) checkHttpUrl(field, url);
  return { ...row, name: toName(row.name) };
}

const toProvider = ({ orgId: _, ...row }: ProviderRow): Provider => ({ ...row, createdAt: toIso(row.createdAt) });
