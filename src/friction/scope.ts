import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Scope } from "./schema.ts";

/**
 * The IDs of one prompt, of all prompts of a provider, or of all. Query each ID separately: with a list, SQLite's planner may
 * choose a full table scan. Throws bad_request unless exactly one is given, and not_found for an unknown ID.
 */
export function promptsWithin({ db }: Context, org: OrgId, { promptId, providerId, everything }: Scope): string[] {
  if (everything)
    return db
      .select({ id: prompts.id })
      .from(prompts)
      .where(eq(prompts.orgId, org))
      .all()
      .map(({ id }) => id);
  if ((promptId === undefined) === (providerId === undefined))
    throw badRequest("Pass promptId for one prompt, or providerId for all prompts of a provider.");
  const [table, what] = promptId === undefined ? ([providers, "provider"] as const) : ([prompts, "prompt"] as const);
  const id = (promptId ?? providerId ?? "").toLowerCase();
  const whereScope = and(eq(table.orgId, org), eq(table.id, id));
  if (!db.select({ id: table.id }).from(table).where(whereScope).get()) throw notFound(`No ${what} has the ID ${id}.`);
  if (promptId !== undefined) return [id];
  const ofProvider = and(eq(prompts.orgId, org), eq(prompts.targetProviderId, id));
  const rows = db.select({ id: prompts.id }).from(prompts).where(ofProvider).all();
  return rows.map((row) => row.id);
}
