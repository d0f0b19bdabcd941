import { createHash } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { version } from "../../package.json" with { type: "json" };
import { firstIdOf } from "../db/rows.ts";
import { orgs, prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Models } from "../models/models.ts";
import type { Reports } from "../reports/reports.ts";
import type { Report } from "../reports/schema.ts";
import { redactKeys, redactSecrets, toInstant, toIso } from "../schema.ts";
import { createFormats } from "./formats.ts";
import { createRowReader } from "./reading.ts";
import { columnsOf, formatVersion, rowTypes } from "./rows.ts";
import type { ExportFilter } from "./schema.ts";
import type { Span } from "./span.ts";

type Parts = { reports: Reports; models: Pick<Models, "secretsOf">; toMarkdown: (report: Report) => string };
export type Exports = ReturnType<typeof createExports>;

/** Exports an organization's data as a stream of lines, so memory use stays constant and concurrent writes do no harm. */
export function createExports(deps: Pick<Deps, "db" | "now">, { reports: ofReports, models, toMarkdown }: Parts) {
  const { db, now } = deps;
  const readRows = createRowReader(deps);
  const formats = createFormats(deps, ofReports, toMarkdown);

  /** Yields a header line, a line per row, and an end line with the row count and checksum. */
  function* lines(span: Span, organization: string): Generator<string> {
    const secrets = models.secretsOf(span.org).map((secret) => JSON.stringify(secret).slice(1, -1));
    const exportedAt = toIso(span.endedBy);
    yield `${JSON.stringify({ type: "evald export", version: formatVersion, evald: version, organization, exportedAt })}\n`;
    const hash = createHash("sha256");
    let rows = 0;
    const columns = new Map(rowTypes.map((type) => [type, columnsOf(type).map(([name]) => name)]));
    for (const [type, row] of readRows(span)) {
      const kept: Record<string, unknown> = {};
      for (const name of columns.get(type) ?? [])
        kept[name] = Buffer.isBuffer(row[name]) ? row[name].toString("base64") : row[name];
      const baseline = kept.baselineRequestId;
      if (typeof baseline === "string" && (baseline < span.from || baseline >= span.to)) kept.baselineRequestId = null;
      // Stored rows should hold no secrets, but a person may have pasted one into a prompt.
      const line = `${redactSecrets(redactKeys(JSON.stringify({ type, row: kept })), secrets)}\n`;
      hash.update(line);
      rows++;
      yield line;
    }
    yield `${JSON.stringify({ type: "end", rows, sha256: hash.digest("hex") })}\n`;
  }

  return {
    /** Yields the export in chunks. It includes every run that ended before the export started. Throws bad_request or not_found before the first chunk. */
    exportOrg(org: OrgId, filter: ExportFilter): Iterable<string> {
      const { format = "jsonl", since, until, minScore, scope } = filter;
      const promptId = filter.promptId?.toLowerCase() ?? null;
      const own = and(eq(prompts.orgId, org), eq(prompts.id, promptId ?? ""));
      if (promptId !== null && !db.select({ id: prompts.id }).from(prompts).where(own).get())
        throw notFound(`No prompt has the ID ${filter.promptId}.`);
      if (minScore !== undefined && format !== "junit")
        throw badRequest("minScore only applies to the format junit. Leave it out, or export as junit.");
      if (scope !== undefined && minScore === undefined)
        throw badRequest("scope only applies to minScore. Leave it out, or pass minScore.");
      const bar = minScore === undefined ? null : { minScore, scope: scope ?? "goal" };
      const endedBy = now();
      const from = since === undefined ? "" : firstIdOf(toInstant("since", since));
      const to = until === undefined ? "g" : firstIdOf(toInstant("until", until));
      const span = { org, promptId, from, to, endedBy };
      if (format === "csv") return formats.csv(span);
      if (format === "junit") return formats.junit(span, bar);
      if (format === "markdown") return formats.markdown(span);
      const name = db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get()?.name ?? "";
      return lines(span, name);
    },
  };
}
