import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { firstIdOf, timeZoneOf } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { badRequest, notFound } from "../errors.ts";
import { listModelSecrets } from "../models/models.ts";
import { getRunRow } from "../runs/run-row.ts";
import { toInstant } from "../schema.ts";
import { type ExportPieces, streamExport } from "./export-thread.ts";
import type { ExportFilter } from "./schema.ts";
import { publicKeyOf } from "./signature.ts";
import { type ExportOrder, writeExport } from "./writer.ts";

/** Yields the export in chunks. It includes every run that ended before the export started. Throws bad_request or not_found before the first chunk. */
export const exportOrg = (ctx: Context, org: OrgId, filter: ExportFilter): Iterable<string> =>
  writeExport(ctx, toOrder(ctx, org, filter));

/** The same, written in a thread. */
export const streamOrg = (ctx: Context, org: OrgId, filter: ExportFilter): ExportPieces =>
  streamExport(ctx, toOrder(ctx, org, filter));

/** The public key that belongs to the signatures of this instance; null: it has no EVALD_SECRET_KEY, so its exports aren't signed. */
export const signingKeyOf = ({ config: { secretKey } }: Context): string | null =>
  secretKey === null ? null : publicKeyOf(secretKey);

/** Comes after all digits of IDs, which are hexadecimal. */
const afterDigits = "g";

function toOrder(ctx: Context, org: OrgId, filter: ExportFilter): ExportOrder {
  const { db, now } = ctx;
  const { format = "jsonl", since, until, minScore, scope } = filter;
  const run = filter.runId === undefined ? null : getRunRow(ctx, org, filter.runId);
  const promptId = filter.promptId?.toLowerCase() ?? run?.promptId ?? null;
  if (promptId !== null) {
    const wherePrompt = and(eq(prompts.orgId, org), eq(prompts.id, promptId));
    const prompt = db.select({ id: prompts.id }).from(prompts).where(wherePrompt).get();
    if (!prompt) throw notFound(`No prompt has the ID ${filter.promptId}.`);
  }
  if (minScore !== undefined && format !== "junit")
    throw badRequest("minScore only applies to the format junit. Leave it out, or export as junit.");
  if (scope !== undefined && minScore === undefined)
    throw badRequest("scope only applies to minScore. Leave it out, or pass minScore.");
  const zone = timeZoneOf(db, org);
  const sinceMs = since === undefined ? null : toInstant("since", since, zone);
  const untilMs = until === undefined ? null : toInstant("until", until, zone);
  const sinceId = sinceMs === null ? "" : firstIdOf(sinceMs);
  const untilId = untilMs === null ? afterDigits : firstIdOf(untilMs);
  const [fromId, toId] = run ? [run.id, run.id + afterDigits] : [sinceId, untilId];
  return {
    format,
    span: { org, promptId, fromId, toId, sinceMs, untilMs, endedBy: now(), hasAuditLog: filter.auditLog === "1" },
    bar: minScore === undefined ? null : { minScore, scope: scope ?? "goal" },
    organization: db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get()?.name ?? "",
    timeZone: zone,
    secrets: listModelSecrets(ctx, org),
    secretKey: ctx.config.secretKey,
  };
}
