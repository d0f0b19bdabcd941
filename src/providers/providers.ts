import { and, desc, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { toAllowRule } from "../config/allow-rules.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { providers } from "../db/tables/prompts.ts";
import { invalidField, notFound } from "../errors.ts";
import { objectionToUrl } from "../net/upstream.ts";
import { checkHttpUrl, toIso, toName } from "../schema.ts";
import type { Provider, ProviderInput, ProviderPatch } from "./schema.ts";

type ProviderRow = typeof providers.$inferSelect;

/** Throws bad_request for a blank name or a URL that is not http(s). */
export function createProvider(ctx: Context, org: OrgId, input: ProviderInput): Provider {
  const { name, docsUrl = null, productUrl = null } = input;
  const createdAt = ctx.now();
  const row = checkRow(ctx, { id: ctx.newId(createdAt), orgId: org, name, docsUrl, productUrl, createdAt });
  transaction(ctx.db, (tx) => {
    tx.insert(providers).values(row).run();
    recordAudit(ctx, org, "provider.created", row, changesOf({}, { docsUrl, productUrl }));
  });
  return toProvider(row);
}

/** Omitted fields keep their values. Throws not_found, and bad_request like `createProvider`. */
export function updateProvider(ctx: Context, org: OrgId, id: string, patch: ProviderPatch): Provider {
  const before = getProviderRow(ctx, org, id);
  const row = checkRow(ctx, { ...before, ...patch }, patch);
  transaction(ctx.db, (tx) => {
    tx.update(providers).set(row).where(eq(providers.id, row.id)).run();
    recordAudit(ctx, org, "provider.updated", row, changesOf(before, row));
  });
  return toProvider(row);
}

/** Throws not_found. */
export const getProvider = (ctx: Context, org: OrgId, id: string): Provider => toProvider(getProviderRow(ctx, org, id));

/** Newest first. */
export const listProviders = ({ db }: Context, org: OrgId): Provider[] =>
  db.select().from(providers).where(eq(providers.orgId, org)).orderBy(desc(providers.id)).all().map(toProvider);

/**
 * Why runs can't reach a URL, as far as this is known without looking up its name; null if they may. Runs can always read the docs of the service
 * itself. A rule with a `publicPort`, whatever its value, says that an address is the service's own.
 */
export const objectionToAddress = (ctx: Context, url: string): string | null =>
  objectionToUrl(url, [...ctx.allow(), { ...toAllowRule(ctx.baseUrl()), publicPort: 0 }]);

function getProviderRow({ db }: Context, org: OrgId, id: string): ProviderRow {
  const where = and(eq(providers.orgId, org), eq(providers.id, id.toLowerCase()));
  const row = db.select().from(providers).where(where).get();
  if (!row) throw notFound(`No provider has the ID ${id}.`);
  return row;
}

/** `patch`: the changed fields. */
function checkRow(ctx: Context, row: ProviderRow, patch: ProviderPatch = row): ProviderRow {
  const { docsUrl, productUrl } = row;
  for (const [field, url] of Object.entries({ docsUrl, productUrl })) if (url !== null) checkHttpUrl(field, url);
  const objection = patch.docsUrl ? objectionToAddress(ctx, patch.docsUrl) : null;
  if (objection) throw invalidField("docsUrl", objection);
  return { ...row, name: toName(row.name) };
}

const toProvider = ({ orgId: _, ...row }: ProviderRow): Provider => ({ ...row, createdAt: toIso(row.createdAt) });
