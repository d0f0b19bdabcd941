import { type Static, Type } from "@sinclair/typebox";
import { scopes } from "../grading/kinds.ts";
import { reportFilter } from "../reports/schema.ts";
import { Moment, OneOf, Score } from "../schema.ts";

export const exportFormats = ["jsonl", "csv", "junit", "markdown"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** The media type and the file ending of each format. */
export const mediaOf: Record<ExportFormat, { type: string; ending: string }> = {
  jsonl: { type: "application/x-ndjson", ending: "jsonl" },
  csv: { type: "text/csv; charset=utf-8", ending: "csv" },
  junit: { type: "application/xml; charset=utf-8", ending: "xml" },
  markdown: { type: "text/markdown; charset=utf-8", ending: "md" },
};

export const exportQuery = {
  format: Type.Optional(
    OneOf(
      exportFormats,
      "jsonl: everything, for evald import; csv: one line per report; junit: one test case per run; markdown: the reports. Default: jsonl",
    ),
  ),
  promptId: reportFilter.promptId,
  runId: Type.Optional(Type.String({ format: "uuid", description: "Only this run" })),
  auditLog: Type.Optional(OneOf(["1"], "With format jsonl: also the audit log. Needs a key with the scope audit")),
  since: Type.Optional(Moment("Only runs requested at or after this time")),
  until: Type.Optional(Moment("Only runs requested before this time")),
  scope: Type.Optional(
    OneOf(scopes, "With minScore: what the score must be of; other reports are errors. Default: goal"),
  ),
  minScore: Type.Optional(Score("With format junit: reports with a lower score are failures")),
};
const ExportQuery = Type.Object(exportQuery);
export type ExportFilter = Static<typeof ExportQuery>;
