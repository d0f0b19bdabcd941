import { and, asc, count, desc, eq, isNotNull, ne, or, type SQL, sql } from "drizzle-orm";
import { type promptStatuses, prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toIso } from "../schema.ts";
import type { PromptSummary } from "./schema.ts";

type Status = (typeof promptStatuses)[number];

/** A prompt in a list. */
export type PromptLine = {
  id: string;
  title: string | null;
  /** The first 300 characters. */
  text: string;
  status: Status;
  frequency: string | null;
  nextSlotAt: string | null;
  tags: string[];
};

/** `status` all: including archived ones; default: all others. `search` matches title and text, ignoring case. */
export type PromptFilter = { search?: string; status?: Status | "all"; tag?: string };

/** Maximum number of prompts in a select. */
const maxChoices = 200;

export const promptSummaryColumns = {
  id: prompts.id,
  title: prompts.title,
  text: prompts.text,
  endGoal: prompts.endGoal,
  status: prompts.status,
  templateVars: prompts.templateVars,
  createdAt: prompts.createdAt,
};

const lineColumns = {
  id: prompts.id,
  title: prompts.title,
  text: sql<string>`substr(${prompts.text}, 1, 300)`,
  status: prompts.status,
  frequency: prompts.frequency,
  nextSlotAt: prompts.nextSlotAt,
  tags: prompts.tags,
};

export const toPromptSummary = (row: Pick<typeof prompts.$inferSelect, keyof PromptSummary>): PromptSummary => ({
  id: row.id,
  title: row.title,
  text: row.text,
  endGoal: row.endGoal,
  status: row.status,
  templateVars: row.templateVars,
  createdAt: toIso(row.createdAt),
});

const toLine = ({ nextSlotAt, ...rest }: Omit<PromptLine, "nextSlotAt"> & { nextSlotAt: number | null }) => ({
  ...rest,
  nextSlotAt: toIso(nextSlotAt),
});

function matching(org: OrgId, { search, status, tag }: PromptFilter): SQL | undefined {
  const has = (column: typeof prompts.title | typeof prompts.text) =>
    sql`instr(lower(${column}), ${search?.toLowerCase()}) > 0`;
  return and(
    eq(prompts.orgId, org),
    status === undefined ? ne(prompts.status, "archived") : undefined,
    status === undefined || status === "all" ? undefined : eq(prompts.status, status),
    tag === undefined ? undefined : sql`exists (select 1 from json_each(${prompts.tags}) where value = ${tag})`,
    search ? or(has(prompts.title), has(prompts.text)) : undefined,
  );
}

/** Lists of prompts, newest first. */
export function createPromptLists({ db }: Pick<Deps, "db">) {
  const totalOf = (where: SQL | undefined) => db.select({ n: count() }).from(prompts).where(where).get()?.n ?? 0;

  function listLines(org: OrgId, filter: PromptFilter, { limit, offset }: Page): Paged<PromptLine> {
    const where = matching(org, filter);
    const rows = db
      .select(lineColumns)
      .from(prompts)
      .where(where)
      .orderBy(desc(prompts.id))
      .limit(limit)
      .offset(offset);
    return { items: rows.all().map(toLine), total: totalOf(where) };
  }

  return {
    listPrompts(
      org: OrgId,
      { limit, offset, includeArchived, tag }: Page & { includeArchived: boolean; tag?: string },
    ): Paged<PromptSummary> {
      const where = matching(org, { status: includeArchived ? "all" : undefined, tag });
      const rows = db
        .select(promptSummaryColumns)
        .from(prompts)
        .where(where)
        .orderBy(desc(prompts.id))
        .limit(limit)
        .offset(offset);
      return { items: rows.all().map(toPromptSummary), total: totalOf(where) };
    },

    listLines,

    /** The organization of a prompt whose badge is public; null for all others. */
    findBadgeOrg(id: string): OrgId | null {
      const where = and(
        eq(prompts.id, id.toLowerCase()),
        eq(prompts.hasPublicBadge, true),
        ne(prompts.status, "archived"),
      );
      return (db.select({ org: prompts.orgId }).from(prompts).where(where).get()?.org ?? null) as OrgId | null;
    },

    /** The tags of the prompts that are not archived, in alphabetical order. */
    listTags: (org: OrgId): string[] =>
      db
        .selectDistinct({ tag: sql<string>`value` })
        .from(sql`${prompts}, json_each(${prompts.tags})`)
        .where(matching(org, {}))
        .orderBy(sql`value`)
        .all()
        .map(({ tag }) => tag),

    /** Options of a filter by prompt: the newest 200, including archived ones. */
    listChoices: (org: OrgId): PromptLine[] =>
      listLines(org, { status: "all" }, { limit: maxChoices, offset: 0 }).items,

    /** The prompts whose schedule runs next, soonest first. */
    listDue: (org: OrgId, limit: number): PromptLine[] =>
      db
        .select(lineColumns)
        .from(prompts)
        .where(and(eq(prompts.orgId, org), isNotNull(prompts.nextSlotAt)))
        .orderBy(asc(prompts.nextSlotAt))
        .limit(limit)
        .all()
        .map(toLine),
  };
}
