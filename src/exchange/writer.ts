import { createHash } from "node:crypto";
import { version } from "../../package.json" with { type: "json" };
import type { Context } from "../context.ts";
import { shownUrlMap } from "../net/mapping.ts";
import { redactKeys, redactSecrets, toIso } from "../schema.ts";
import { type Bar, writeCsv, writeJunit, writeMarkdown } from "./formats.ts";
import { readRows } from "./reading.ts";
import { columnsOf, formatVersion, type RowType, rowTypes } from "./rows.ts";
import type { ExportFormat } from "./schema.ts";
import type { Span } from "./span.ts";

/** What to export, as plain data: everything about a request that its export needs. */
export type ExportOrder = {
  format: ExportFormat;
  span: Span;
  bar: Bar | null;
  /** The organization's name. */
  organization: string;
  /** Texts that must not appear in the file. */
  secrets: string[];
};

/** Writes an export in chunks, so memory use stays constant and concurrent writes do no harm. */
export function writeExport(ctx: Context, order: ExportOrder): Generator<string> {
  const { format, span, bar } = order;
  if (format === "csv") return writeCsv(ctx, span);
  if (format === "junit") return writeJunit(ctx, span, bar);
  return format === "markdown" ? writeMarkdown(ctx, span) : writeLines(ctx, order);
}

/** Yields a header line, a line per row, and an end line with the row count and checksum. */
function* writeLines({ db }: Context, { span, organization, secrets }: ExportOrder): Generator<string> {
  const escapedSecrets = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  const exportedAt = toIso(span.endedBy);
  yield `${JSON.stringify({ type: "evald export", version: formatVersion, evald: version, organization, exportedAt })}\n`;
  const hash = createHash("sha256");
  let rows = 0;
  for (const [type, row] of readRows(db, span)) {
    // Stored rows should hold no secrets, but a person may have pasted one into a prompt.
    const text = redactSecrets(redactKeys(JSON.stringify({ type, row: toExported(type, row, span) })), escapedSecrets);
    const line = `${text}\n`;
    hash.update(line);
    rows++;
    yield line;
  }
  yield `${JSON.stringify({ type: "end", rows, sha256: hash.digest("hex") })}\n`;
}

const columnNames = new Map(rowTypes.map((type) => [type, columnsOf(type).map(([name]) => name)]));

/** The exported columns of a row. A baseline that is outside the span is left out. */
function toExported(type: RowType, row: Record<string, unknown>, { from, to }: Span): Record<string, unknown> {
  const exported: Record<string, unknown> = {};
  for (const name of columnNames.get(type) ?? []) {
    const value = row[name];
    exported[name] = Buffer.isBuffer(value) ? value.toString("base64") : value;
  }
  if (type === "run") exported.urlMap = shownUrlMap(row.urlMap as Record<string, string>);
  const baseline = exported.baselineRequestId;
  if (typeof baseline === "string" && (baseline < from || baseline >= to)) exported.baselineRequestId = null;
  return exported;
}
