import { and, eq, gt, ne, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { modelSyntax, parseModelId } from "../config/model-settings.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { type Tx, transaction } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import type { OrgLimits } from "../jobs/claim-order.ts";
import { readPackageFile } from "../lazy-packages.ts";
import { lazy } from "../once.ts";
import { newUrlSecret, toIso, toName, toVisibleName } from "../schema.ts";

const maxLimit = 1_000_000;

/** An organization as the API returns it. Its limits and judge models are null if the configured ones apply. */
export type Org = ReturnType<typeof toOrg>;

type OrgPatch = Partial<Omit<Org, "id" | "resultsPath" | "createdAt">> & { hasResultsPage?: boolean };

const toOrg = (row: typeof orgs.$inferSelect) => ({
  id: row.id as OrgId,
  name: row.name,
  timeZone: row.timeZone,
  maxRunsAtOnce: row.maxRunsAtOnce,
  maxRunsADay: row.maxRunsADay,
  maxUsdAMonth: row.maxUsdAMonth,
  maxUsdARun: row.maxUsdARun,
  judgeModels: row.judgeModels,
  /** Path of the public results page, without the base path; null: there is no such page. */
  resultsPath: row.resultsToken === null ? null : `/results/${row.resultsToken}`,
  createdAt: toIso(row.createdAt),
});

const orgLimits = statement((db) =>
  db
    .select({ atOnce: orgs.maxRunsAtOnce, aDay: orgs.maxRunsADay })
    .from(orgs)
    .where(eq(orgs.id, sql.placeholder("id"))),
);

const moveNextEvaluation = statement((db) =>
  db
    .update(prompts)
    .set({ nextEvaluationAt: sql`${sql.placeholder("to")}` })
    .where(and(eq(prompts.id, sql.placeholder("promptId")), eq(prompts.nextEvaluationAt, sql.placeholder("from")))),
);

/** Throws not_found. */
export function getOrg(ctx: Context, id: OrgId): Org {
  const row = ctx.db.select().from(orgs).where(eq(orgs.id, id)).get();
  if (!row) throw notFound("The organization was not found.");
  return toOrg(row);
}

/** Throws bad_request for a blank or long name or an unknown time zone, and conflict for an existing name. */
export function createOrg(ctx: Context, name: string, timeZone = "UTC"): Org {
  const trimmedName = toName(name);
  checkTimeZone(timeZone);
  return transaction(ctx.db, (tx) => {
    refuseUsedName(tx, trimmedName);
    const createdAt = ctx.now();
    const id = ctx.newId(createdAt) as OrgId;
    tx.insert(orgs).values({ id, name: trimmedName, timeZone, createdAt }).run();
    const org = getOrg(ctx, id);
    recordAudit(ctx, id, "organization.created", org, changesOf({}, { timeZone }));
    return org;
  });
}

/** How many runs of an organization may run at the same time, and how many may start within 24 hours. */
export function limitsOfOrg(ctx: Context, id: string): OrgLimits {
  const row = orgLimits(ctx.db).get({ id });
  return { atOnce: row?.atOnce ?? ctx.config.runsPerOrg, aDay: row?.aDay ?? ctx.config.runsADay };
}

/**
 * Changes an organization. A new time zone moves the next evaluation of every schedule, except evaluations that are already due. Throws bad_request
 * that names an invalid value, or if nothing would change, and conflict for a name that is already used.
 */
export function updateOrg(ctx: Context, id: OrgId, { hasResultsPage, ...patch }: OrgPatch): Org {
  const { timeZone } = patch;
  const name = patch.name === undefined ? undefined : toName(patch.name);
  if (Object.values({ ...patch, hasResultsPage }).every((value) => value === undefined))
    throw badRequest("Nothing to change. Set a name, a time zone, a limit, a judge model or the results page.");
  checkOrgSettings(patch);
  const nextEvaluations = timeZone === undefined ? [] : listNextEvaluations(ctx, id, timeZone);
  return transaction(ctx.db, (tx) => {
    if (name !== undefined) refuseUsedName(tx, name, id);
    const before = getOrg(ctx, id);
    // If the page is already on, it keeps its URL.
    const resultsToken = hasResultsPage ? sql`coalesce(${orgs.resultsToken}, ${newUrlSecret()})` : null;
    tx.update(orgs)
      .set({ ...patch, name, ...(hasResultsPage !== undefined && { resultsToken }) })
      .where(eq(orgs.id, id))
      .run();
    for (const each of nextEvaluations) moveNextEvaluation(ctx.db).run(each);
    const after = getOrg(ctx, id);
    // The path is masked, because it contains the secret of the page.
    recordAudit(ctx, id, "organization.updated", after, changesOf(before, after, { secrets: ["resultsPath"] }));
    return after;
  });
}

/** The organization whose public results page has this token; null: there is none, or the page was turned off. */
export function findOrgByResultsToken(ctx: Context, token: string): Org | null {
  const row = ctx.db.select().from(orgs).where(eq(orgs.resultsToken, token)).get();
  return row ? toOrg(row) : null;
}

/** The organization with a name. Only for the command line, whose user has full access to the machine. Throws not_found. */
export function getOrgByName(ctx: Context, name: string): Org {
  const row = ctx.db.select().from(orgs).where(eq(orgs.name, name.trim())).get();
  if (!row) throw notFound(`No organization is named ${JSON.stringify(name)}. List them with evald org list.`);
  return toOrg(row);
}

/** All organizations of this server, by name. */
export const listOrgs = (ctx: Context): Org[] => ctx.db.select().from(orgs).orderBy(orgs.name).all().map(toOrg);

/** Whether this server has exactly one organization. */
export const hasOneOrg = (ctx: Context): boolean =>
  ctx.db.select({ id: orgs.id }).from(orgs).limit(2).all().length === 1;

/** The times of the next evaluations in a new time zone. They are computed before the transaction, because the transaction blocks other writers. */
function listNextEvaluations(ctx: Context, id: OrgId, timeZone: string) {
  const { frequency, nextEvaluationAt } = prompts;
  const now = ctx.now();
  return ctx.db
    .select({ id: prompts.id, frequency, nextEvaluationAt })
    .from(prompts)
    .where(and(eq(prompts.orgId, id), gt(nextEvaluationAt, now)))
    .all()
    .flatMap((row) =>
      row.frequency === null || row.nextEvaluationAt === null
        ? []
        : {
            promptId: row.id,
            from: row.nextEvaluationAt,
            to: nextTime({ id: row.id, frequency: row.frequency, timeZone }, now),
          },
    );
}

/** Creates an organization for a person. Throws like `createOrg`, and conflict for a reserved name. */
export function createOrgAsPerson(ctx: Context, name: string): Org {
  checkReservedName(ctx, name);
  return createOrg(ctx, name);
}

/** Changes an organization for a person. Throws like `updateOrg`, and conflict for a reserved name. */
export function updateOrgAsPerson(ctx: Context, id: OrgId, patch: OrgPatch): Org {
  if (patch.name !== undefined) checkOrgName(ctx, id, patch.name);
  return updateOrg(ctx, id, patch);
}

/** Throws bad_request for a blank or long name, and conflict for a name that is reserved or that another organization has. */
export function checkOrgName(ctx: Context, id: OrgId, name: string): void {
  const trimmed = toName(name);
  if (trimmed !== getOrg(ctx, id).name) checkReservedName(ctx, trimmed);
  refuseUsedName(ctx.db, trimmed, id);
}

/**
 * Throws conflict for the organization name in EVALD_OIDC_JOIN. Everyone of the domain joins the organization with that name. So only the operator
 * may give the name to an organization, on the command line.
 */
function checkReservedName({ config }: Context, name: string): void {
  const orgToJoin = config.people.oidc?.join?.org;
  if (orgToJoin && "name" in orgToJoin && toName(name) === orgToJoin.name)
    throw conflict(`The name ${JSON.stringify(orgToJoin.name)} is reserved by the operator of this server.`);
}

/** Throws bad_request that names an invalid value. */
export function checkOrgSettings(settings: OrgPatch): void {
  const { timeZone, maxRunsAtOnce, maxRunsADay, maxUsdAMonth, maxUsdARun, judgeModels } = settings;
  if (timeZone !== undefined) checkTimeZone(timeZone);
  for (const limit of [maxRunsAtOnce, maxRunsADay])
    if (limit != null && !(Number.isInteger(limit) && limit >= 1 && limit <= maxLimit))
      throw badRequest(`Invalid limit ${limit}. Use a whole number from 1 to ${maxLimit}.`);
  for (const usd of [maxUsdAMonth, maxUsdARun])
    if (usd != null && !(usd > 0 && usd <= maxLimit))
      throw badRequest(`Invalid limit ${usd}. Use an amount in USD above 0 and up to ${maxLimit}.`);
  for (const model of judgeModels ?? [])
    if (!parseModelId(model)) throw badRequest(`Invalid model ${JSON.stringify(model)}. Use ${modelSyntax}.`);
}

/**
 * Loads the map from each character to the one that it looks like. The package's own function compiles a regular expression of 6,000 characters,
 * which takes 50 ms.
 */
const loadLookAlikes = lazy(
  (): Record<string, string> => JSON.parse(readPackageFile("unhomoglyph/data.json").toString()),
);

/** A text that is equal for names that look the same, even with letters of different writing systems (Unicode Technical Standard 39, section 4). */
function toSkeleton(name: string): string {
  const lookAlikes = loadLookAlikes();
  return Array.from(toVisibleName(name).normalize("NFD"), (char) => lookAlikes[char] ?? char)
    .join("")
    .normalize("NFD");
}

/** Throws conflict if another organization has a name that looks the same. `id`: the organization itself, which may keep its name. */
function refuseUsedName(tx: Tx | Context["db"], name: string, id?: OrgId): void {
  const others = tx
    .select({ name: orgs.name })
    .from(orgs)
    .where(id === undefined ? undefined : ne(orgs.id, id))
    .all();
  const skeleton = toSkeleton(name);
  const sameName = others.find((other) => toSkeleton(other.name) === skeleton);
  if (sameName) throw conflict(`An organization named ${JSON.stringify(sameName.name)} already exists.`);
}

function checkTimeZone(name: string): void {
  if (name === "UTC") return;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
  } catch {
    throw badRequest(`Unknown time zone ${JSON.stringify(name)}. Use a name such as Europe/Berlin.`);
  }
}
