import { and, desc, eq } from "drizzle-orm";
import { providers } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import { checkHttpUrl, toIso, toName } from "../schema.ts";
import type { Provider, ProviderInput, ProviderPatch } from "./schema.ts";

type Row = typeof providers.$inferSelect;

export type Providers = ReturnType<typeof createProviders>;

export function createProviders({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const toProvider = ({ orgId: _, ...row }: Row): Provider => ({
    ...row,
    createdAt: toIso(row.createdAt),
  });

  function check(row: Row): Row {
    const { docsUrl, productUrl } = row;
    for (const [field, url] of Object.entries({ docsUrl, productUrl })) if (url !== null) checkHttpUrl(field, url);
    return { ...row, name: toName(row.name) };
  }

  /** Throws not_found. */
  function getRow(org: OrgId, id: string): Row {
    const own = and(eq(providers.orgId, org), eq(providers.id, id.toLowerCase()));
    const row = db.select().from(providers).where(own).get();
    if (!row) throw notFound(`No provider has the ID ${id}.`);
    return row;
  }

  return {
    /** Throws bad_request for a blank name or a URL that is not http(s). */
    createProvider(org: OrgId, { name, docsUrl = null, productUrl = null }: ProviderInput): Provider {
      const createdAt = now();
      const row = check({ id: newId(createdAt), orgId: org, name, docsUrl, productUrl, createdAt });
      db.insert(providers).values(row).run();
      return toProvider(row);
    },

    /** Omitted fields keep their values. Throws not_found, and bad_request like `createProvider`. */
    updateProvider(org: OrgId, id: string, patch: ProviderPatch): Provider {
      const row = check({ ...getRow(org, id), ...patch });
      db.update(providers).set(row).where(eq(providers.id, row.id)).run();
      return toProvider(row);
    },

    /** Throws not_found. */
    getProvider: (org: OrgId, id: string): Provider => toProvider(getRow(org, id)),

    /** Newest first. */
    listProviders: (org: OrgId): Provider[] =>
      db.select().from(providers).where(eq(providers.orgId, org)).orderBy(desc(providers.id)).all().map(toProvider),
  };
}
