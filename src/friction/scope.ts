import { and, eq, type SQL } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Scope } from "./schema.ts";

/**
 * The IDs of one prompt, of all prompts of a provider, or of all with `everything`. Query each ID separately: with a list, SQLite's planner
 * may choose a full table scan. Throws bad_request unless one of them is given, and not_found for an unknown ID.
 */
export function promptsWithin({ db }: Context, org: OrgId, { promptId, providerId, everything }: Scope): string[] {
  const idsWhere = (condition?: SQL): string[] => {
    const where = and(eq(prompts.orgId, org), condition);
    const rows = db.select({ id: prompts.id }).from(prompts).where(where).all();
    return rows.map(({ id }) => id);
  };
  if (everything) return idsWhere();
  if (promptId !== undefined && providerId === undefined) {
    const id = promptId.toLowerCase();
    const ids = idsWhere(eq(prompts.id, id));
    if (ids.length === 0) throw notFound(`No prompt has the ID ${id}.`);
    return ids;
  }
  if (providerId !== undefined && promptId === undefined) {
    const id = providerId.toLowerCase();
    const where = and(eq(providers.orgId, org), eq(providers.id, id));
    const provider = db.select({ id: providers.id }).from(providers).where(where).get();
    if (!provider) throw notFound(`No provider has the ID ${id}.`);
    return idsWhere(eq(prompts.targetProviderId, id));
  }
  throw badRequest("Pass promptId for one prompt, or providerId for all prompts of a provider.");
}
