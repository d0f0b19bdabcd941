import { and, desc, eq } from "drizzle-orm";
import { providers } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";

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
      const name = input.name.trim();
      if (name === "" || name.length > 200) throw badRequest("name: must have 1 to 200 characters");
      const createdAt = now();
      const row = {
        id: newId(createdAt),
        orgId: org,
        name,
        docsUrl: httpUrl("docsUrl", input.docsUrl),
        productUrl: httpUrl("productUrl", input.productUrl),
        createdAt,
      };
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

function httpUrl(field: string, value: string | null | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value))
    throw badRequest(`${field}: ${JSON.stringify(value)} must be an http or https address`);
  return value;
}
