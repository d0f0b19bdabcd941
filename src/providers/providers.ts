import { and, desc, eq } from "drizzle-orm";
import { providers } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import { checkHttpUrl, toName } from "../schema.ts";

/** A developer tool under evaluation: where its docs and its product are. */
export type Provider = {
  id: string;
  name: string;
  docsUrl: string | null;
  productUrl: string | null;
  createdAt: string;
};

export type Providers = ReturnType<typeof createProviders>;

export function createProviders({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const toProvider = ({ orgId: _, ...row }: typeof providers.$inferSelect): Provider => ({
    ...row,
    createdAt: new Date(row.createdAt).toISOString(),
  });

  return {
    /** Throws bad_request for a blank name or an address that is not http(s). */
    createProvider(org: OrgId, input: { name: string; docsUrl?: string | null; productUrl?: string | null }): Provider {
      const { docsUrl = null, productUrl = null } = input;
      for (const [field, url] of Object.entries({ docsUrl, productUrl })) if (url !== null) checkHttpUrl(field, url);
      const createdAt = now();
      const row = { id: newId(createdAt), orgId: org, name: toName(input.name), docsUrl, productUrl, createdAt };
      db.insert(providers).values(row).run();
      return toProvider(row);
    },
    /** Throws not_found. */
    getProvider(org: OrgId, id: string): Provider {
      const row = db
        .select()
        .from(providers)
        .where(and(eq(providers.orgId, org), eq(providers.id, id)))
        .get();
      if (!row) throw notFound(`no provider has the id ${id}`);
      return toProvider(row);
    },
    listProviders: (org: OrgId): Provider[] =>
      db.select().from(providers).where(eq(providers.orgId, org)).orderBy(desc(providers.id)).all().map(toProvider),
  };
}
