import { and, desc, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { suites } from "../db/tables/suites.ts";
import { conflict, invalidField, notFound } from "../errors.ts";
import { baseline } from "./baseline.ts";
import type { Suite } from "./schema.ts";

/** The newest version of each suite, the built-in one first. */
export function listSuites({ db }: Context, org: OrgId): Suite[] {
  const rows = db.select().from(suites).where(eq(suites.orgId, org)).orderBy(suites.name, desc(suites.version)).all();
  const newest = rows.filter(({ name }, i) => rows[i - 1]?.name !== name);
  return [baseline, ...newest.map(toSuite)];
}

/** The newest version of a suite. Throws not_found. */
export function getSuite({ db }: Context, org: OrgId, id: string): Suite {
  if (id === baseline.id) return baseline;
  const where = and(eq(suites.orgId, org), eq(suites.name, id));
  const row = db.select().from(suites).where(where).orderBy(desc(suites.version)).get();
  if (!row) throw notFound(`No suite has the ID ${id}.`);
  return toSuite(row);
}

/** Creates a suite or its next version. Throws bad_request, which names the field, and conflict if the version is not the next one. */
export function createSuite(ctx: Context, org: OrgId, input: Suite): Suite {
  if (input.id === baseline.id) throw invalidField("id", "baseline is built in; choose another ID");
  const names = input.slots.map(({ slot }) => slot);
  const repeated = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (repeated >= 0) throw invalidField(`slots.${repeated}.slot`, "an earlier slot has the same name");
  const createdAt = ctx.now();
  return transaction(ctx.db, (tx) => {
    const where = and(eq(suites.orgId, org), eq(suites.name, input.id));
    const newest = tx.select().from(suites).where(where).orderBy(desc(suites.version)).get();
    const next = (newest?.version ?? 0) + 1;
    if (input.version !== next) throw conflict(`The next version of ${input.id} is ${next}. A version never changes.`);
    const { id: name, title, slots, limits, agents } = input;
    const row: typeof suites.$inferSelect = {
      id: ctx.newId(createdAt),
      orgId: org,
      name,
      version: next,
      title,
      createdAt,
      slots,
      limits,
      agents: agents?.map(({ model = null, ...each }) => ({ ...each, model })) ?? null,
    };
    tx.insert(suites).values(row).run();
    recordAudit(ctx, org, "suite.created", { id: row.id, name: title }, changesOf({}, { version: row.version }));
    return toSuite(row);
  });
}

const toSuite = ({ name: id, version, title, slots, limits, agents }: typeof suites.$inferSelect): Suite => {
  return { id, version, title, slots, limits, agents };
};
