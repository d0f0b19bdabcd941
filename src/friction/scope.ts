import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Scope } from "./schema.ts";

/**
 * The IDs of one prompt, of all prompts of a provider, or of all prompts with `everything`. Query each ID separately, because SQLite's planner may
 * choose a full table scan for a list. Throws bad_request unless one of the three is given, and not_found for an unknown ID.
 */
export function promptsWithin({ db }: Context, org: OrgId, { promptId, providerId, everything }: Scope): string[] {
  const ids = { id: prompts.id };
  if (everything) {
    const rows = db.select(ids).from(prompts).where(eq(prompts.orgId, org)).all();
    return rows.map(({ id }) => id);
  }
  if (promptId !== undefined && providerId === undefined) {
    const id = promptId.toLowerCase();
    const where = and(eq(prompts.orgId, org), eq(prompts.id, id));
    if (!db.select(ids).from(prompts).where(where).get()) throw notFound(`No prompt has the ID ${id}.`);
    return [id];
  }
  if (providerId !== undefined && promptId === undefined) {
    const id = providerId.toLowerCase();
    const where = and(eq(providers.orgId, org), eq(providers.id, id));
    const provider = db.select({ id: providers.id }).from(providers).where(where).get();
    if (!provider) throw notFound(`No provider has the ID ${id}.`);
    const ofProvider = and(eq(prompts.orgId, org), eq(prompts.targetProviderId, id));
    const rows = db.select(ids).from(prompts).where(ofProvider).all();
    return rows.map((row) => row.id);
  }
  throw badRequest("Pass promptId for one prompt, or providerId for all prompts of a provider.");
}
