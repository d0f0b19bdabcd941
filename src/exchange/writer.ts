import { createHash } from "node:crypto";
import { version } from "../../package.json" with { type: "json" };
import type { Context } from "../context.ts";
import { withoutUrlMapTokens } from "../net/mapping.ts";
import { redactKeys, redactSecrets, toIso } from "../schema.ts";
import { exportCsv, exportJunit, exportMarkdown, type SuccessBar } from "./formats.ts";
import { readRows, type Span } from "./reading.ts";
import { columnsOf, formatVersion, omissionsOf, rowTypes } from "./rows.ts";
import type { ExportFormat } from "./schema.ts";
import { signExport } from "./signature.ts";

/** What to export, as plain data. It contains everything about a request that its export needs. */
export type ExportOrder = {
  format: ExportFormat;
  span: Span;
  bar: SuccessBar | null;
  /** The organization's name. */
  organization: string;
  /** Its time zone, in which the exported schedules run. */
  timeZone: string;
  /** Texts that must not appear in the file. */
  secrets: string[];
  /** EVALD_SECRET_KEY, with which the file is signed; null: it is not signed. */
  secretKey: Uint8Array | null;
};

/** Yields an export in pieces. */
export function writeExport(ctx: Context, order: ExportOrder): Generator<string> {
  const { format, span, bar } = order;
  if (format === "csv") return exportCsv(ctx, span);
  if (format === "junit") return exportJunit(ctx, span, bar);
  return format === "markdown" ? exportMarkdown(ctx, span) : writeLines(ctx, order);
}

/** Yields a header line, a line per row, and an end line with the row count, checksum and signature. */
function* writeLines(
  ctx: Context,
  { span, organization, timeZone, secrets, secretKey }: ExportOrder,
): Generator<string> {
  // The secrets as they appear in a text in JSON.
  const secretsInJson = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  const exportedAt = toIso(span.endedBy);
  const omitted = omissionsOf(span.promptId !== null, span.hasAuditLog);
  const format = { type: "evald export", version: formatVersion, evald: version };
  const header = JSON.stringify({ ...format, organization, timeZone, exportedAt, omitted });
  yield `${header}\n`;
  const hash = createHash("sha256");
  let rows = 0;
  const columns = new Map(rowTypes.map((type) => [type, columnsOf(type).map(([name]) => name)]));
  for (const [type, row] of readRows(ctx.db, span)) {
    const values: Record<string, unknown> = {};
    for (const name of columns.get(type) ?? [])
      values[name] = Buffer.isBuffer(row[name]) ? row[name].toString("base64") : row[name];
    if (type === "run") values.urlMap = withoutUrlMapTokens(row.urlMap as Record<string, string>);
    const baseline = values.baselineRequestId;
    // The file lacks evaluations outside of its span.
    if (typeof baseline === "string" && (baseline < span.fromId || baseline >= span.toId))
      values.baselineRequestId = null;
    // Stored rows should hold no secrets, but a person may have pasted one into a prompt.
    const line = `${redactSecrets(redactKeys(JSON.stringify({ type, row: values })), secretsInJson)}\n`;
    hash.update(line);
    rows++;
    yield line;
  }
  const checksum = { rows, sha256: hash.digest("hex") };
  yield `${JSON.stringify({ type: "end", ...checksum, ...(secretKey && signExport(secretKey, header, checksum)) })}\n`;
}
