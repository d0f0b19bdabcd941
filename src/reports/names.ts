import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { bound, statement } from "../db/prepared.ts";
import { reports } from "../db/tables/reports.ts";
import { notFound } from "../errors.ts";

const slugOfRun = statement((db) =>
  db
    .select({ slug: reports.slug })
    .from(reports)
    .where(and(eq(reports.orgId, bound("org")), eq(reports.runId, bound("run")))),
);

/** Finds the slug in a text that a person pasted: a slug, or the URL of a report or its run. Throws not_found for a run without a report. */
export function readSlug(ctx: Context, org: OrgId, text: string): string {
  // For example https://evald.example.com/reports/upload-a-file-7f3a91c2.md?shared#F1.
  const urlShape = /^[a-z]+:\/\/(?:.*\/)?(?<kind>reports|runs)\/(?<name>[^/?#]+?)(?:\.md)?\/?(?:[?#].*)?$/i;
  const { kind, name = text } = urlShape.exec(text)?.groups ?? {};
  if (kind?.toLowerCase() !== "runs") return name;
  const report = slugOfRun(ctx.db).get({ org, run: name.toLowerCase() });
  if (!report) throw notFound(`The run ${name} has no report.`);
  return report.slug;
}
