import { and, asc, count, desc, eq, isNotNull, ne, or, sql } from "drizzle-orm";
import { type promptStatuses, prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import type { Page, Paged } from "../paging.ts";

type Status = (typeof promptStatuses)[number];

/** A prompt as a list shows it. */
export type PromptLine = {
  id: string;
  title: string | null;
  text: string;
  status: Status;
  frequency: string | null;
  nextSlotAt: string | null;
};

/** `status` all: archived ones too; without, all but those. `search` stands in title or text, whatever its case. */
export type PromptFilter = { search?: string; status?: Status | "all" };

/** Prompts as lists for people. */
export function createPromptLists({ db }: Pick<Deps, "db">) {
  const columns = {
    id: prompts.id,
    title: prompts.title,
    text: sql<string>`substr(${prompts.text}, 1, 300)`,
    status: prompts.status,
    frequency: prompts.frequency,
    nextSlotAt: prompts.nextSlotAt,
  };
  const toLine = ({ nextSlotAt, ...rest }: Omit<PromptLine, "nextSlotAt"> & { nextSlotAt: number | null }) => ({
    ...rest,
    nextSlotAt: nextSlotAt === null ? null : new Date(nextSlotAt).toISOString(),
  });

  return {
    /** Newest first. */
    findLines(org: OrgId, { search, status }: PromptFilter, { limit, offset }: Page): Paged<PromptLine> {
      const has = (column: typeof prompts.title | typeof prompts.text) =>
        sql`instr(lower(${column}), ${search?.toLowerCase()}) > 0`;
      const where = and(
        eq(prompts.orgId, org),
        status === undefined ? ne(prompts.status, "archived") : undefined,
        status === undefined || status === "all" ? undefined : eq(prompts.status, status),
        search ? or(has(prompts.title), has(prompts.text)) : undefined,
      );
      const rows = db.select(columns).from(prompts).where(where).orderBy(desc(prompts.id)).limit(limit).offset(offset);
      const total = db.select({ n: count() }).from(prompts).where(where).get()?.n ?? 0;
      return { items: rows.all().map(toLine), total };
    },

    /** The prompts whose schedule comes next, soonest first. */
    listDue: (org: OrgId, limit: number): PromptLine[] =>
      db
        .select(columns)
        .from(prompts)
        .where(and(eq(prompts.orgId, org), isNotNull(prompts.nextSlotAt)))
        .orderBy(asc(prompts.nextSlotAt))
        .limit(limit)
        .all()
        .map(toLine),
  };
}
