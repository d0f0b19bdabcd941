import { type Static, Type } from "@sinclair/typebox";
import { and, desc, eq, inArray, isNull, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { dismissals, frictionPoints } from "../db/tables/friction.ts";
import { prompts } from "../db/tables/prompts.ts";
import { conflict, notFound } from "../errors.ts";
import { type Page, type Paged, paginate } from "../http/paging.ts";
import { Fingerprint, Id, Nullable, notBlank, Time, toIso } from "../schema.ts";

export const DismissalInput = Type.Object(
  {
    fingerprints: Type.Array(Fingerprint, {
      minItems: 1,
      maxItems: 50,
      description: "Fingerprints of friction points",
    }),
    reason: Type.String({ minLength: 1, maxLength: 2000, ...notBlank, description: "Why it is not a problem" }),
  },
  {
    title: "DismissalInput",
    examples: [{ fingerprints: ["5f0c9d1e2b7a4c38"], reason: "The old URL redirects on purpose." }],
  },
);
type DismissalInput = Static<typeof DismissalInput>;

export const Dismissal = Type.Object(
  {
    id: Id,
    fingerprints: Type.Array(Type.String()),
    title: Type.String({ description: "Title of the first friction point when it was dismissed" }),
    reason: Type.String(),
    dismissedBy: Type.String(),
    createdAt: Time,
  },
  { title: "Dismissal", description: "A decision that friction points are not a problem" },
);
export type Dismissal = Static<typeof Dismissal>;

/** The dismissal of a friction point or recommended fix. */
export const Dismissed = Nullable(
  Type.Pick(Dismissal, ["id", "reason", "dismissedBy", "createdAt"], {
    title: "Dismissed",
    description: "null: not dismissed",
  }),
);

type DismissalRow = typeof dismissals.$inferSelect;
const toDismissal = ({ id, fingerprints, title, reason, dismissedBy, createdAt }: DismissalRow): Dismissal => ({
  id,
  fingerprints,
  title,
  reason,
  dismissedBy,
  createdAt: toIso(createdAt),
});

const activeDismissalRows = statement((db) =>
  db
    .select()
    .from(dismissals)
    .where(and(eq(dismissals.orgId, sql.placeholder("org")), isNull(dismissals.withdrawnAt)))
    .orderBy(desc(dismissals.id)),
);

const activeOf = (ctx: Context, org: OrgId) => activeDismissalRows(ctx.db).all({ org });

/** The active dismissal of each dismissed fingerprint. */
export const activeDismissals = (ctx: Context, org: OrgId): Map<string, Dismissal> =>
  new Map(activeOf(ctx, org).flatMap((row) => row.fingerprints.map((each) => [each, toDismissal(row)] as const)));

/** Active dismissals, newest first. */
export function listDismissals(ctx: Context, org: OrgId, page: Page): Paged<Dismissal> {
  const { items, total } = paginate(activeOf(ctx, org), page);
  return { items: items.map(toDismissal), total };
}

/** Throws not_found for an unknown fingerprint, and conflict if all of them are dismissed already. */
export function dismissFriction(
  ctx: Context,
  org: OrgId,
  { fingerprints, reason }: DismissalInput,
  by: string,
): Dismissal {
  return transaction(ctx.db, (tx) => {
    const distinct = [...new Set(fingerprints)];
    const ofOrg = tx.select({ id: prompts.id }).from(prompts).where(eq(prompts.orgId, org));
    const whereListed = and(
      eq(frictionPoints.orgId, org),
      inArray(frictionPoints.promptId, ofOrg),
      inArray(frictionPoints.fingerprint, distinct),
    );
    const { fingerprint, title } = frictionPoints;
    const points = tx.selectDistinct({ fingerprint, title }).from(frictionPoints).where(whereListed).all();
    const titles = new Map(points.map((row) => [row.fingerprint, row.title]));
    const unknown = distinct.find((each) => !titles.has(each));
    if (unknown) throw notFound(`No friction point has the fingerprint ${unknown}.`);
    const dismissed = new Set(activeOf(ctx, org).flatMap((row) => row.fingerprints));
    if (distinct.every((each) => dismissed.has(each))) throw conflict("These friction points are already dismissed.");
    const createdAt = ctx.now();
    const row: DismissalRow = {
      id: ctx.newId(createdAt),
      orgId: org,
      fingerprints: distinct,
      title: titles.get(distinct[0] ?? "") ?? "",
      reason: reason.trim(),
      dismissedBy: by,
      createdAt,
      withdrawnBy: null,
      withdrawnAt: null,
    };
    tx.insert(dismissals).values(row).run();
    recordAudit(ctx, org, "dismissal.created", { id: row.id, name: row.title }, changesOf({}, { reason: row.reason }));
    return toDismissal(row);
  });
}

/** Undoes a dismissal; repeating it changes nothing. Throws not_found. */
export function withdrawDismissal(ctx: Context, org: OrgId, id: string, by: string): Dismissal {
  const whereDismissal = and(eq(dismissals.orgId, org), eq(dismissals.id, id));
  return transaction(ctx.db, (tx) => {
    const row = tx.select().from(dismissals).where(whereDismissal).get();
    if (!row) throw notFound(`No dismissal has the ID ${id}.`);
    if (row.withdrawnAt === null) {
      tx.update(dismissals).set({ withdrawnAt: ctx.now(), withdrawnBy: by }).where(whereDismissal).run();
      recordAudit(ctx, org, "dismissal.undone", { id: row.id, name: row.title });
    }
    return toDismissal(row);
  });
}
