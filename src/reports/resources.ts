import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { type Call, invalidParams, RpcError } from "../mcp/tool.ts";
import { scoreText } from "./labels.ts";
import { listReports } from "./lists.ts";
import { reportMarkdown } from "./markdown.ts";
import { getReport } from "./reports.ts";
import type { ReportSummary } from "./schema.ts";

const scheme = "evald://reports/";
const template = `${scheme}{slug}`;
const mimeType = "text/markdown";
const pageRows = 50;
/** The MCP error code for a resource that doesn't exist. */
const resourceNotFound = -32002;

/** The URI of a report as an MCP resource. */
export const toReportUri = (slug: string): string => scheme + encodeURIComponent(slug);

/** "Upload a file: B (84.2), 2026-11-21" */
function titleOfResource({ slug, prompt, score, scope, grade, createdAt }: ReportSummary): string {
  const result = grade === null ? scoreText({ score, scope }) : `${grade} (${score})`;
  return `${prompt.title ?? slug}: ${result}, ${createdAt.slice(0, 10)}`;
}

/** Reports as MCP resources, in Markdown. */
export function reportResources(ctx: Context) {
  function read(uri: string, { caller }: Call) {
    const missing = () =>
      new RpcError(resourceNotFound, `Resource not found: ${uri}. List resources with resources/list.`, { uri });
    if (!uri.startsWith(scheme)) throw missing();
    try {
      return {
        uri,
        mimeType,
        text: reportMarkdown(getReport(ctx, caller.org, decodeURIComponent(uri.slice(scheme.length)))),
      };
    } catch (error) {
      if (error instanceof URIError || (error instanceof AppError && error.code === "not_found")) throw missing();
      throw error;
    }
  }

  return {
    template,
    read,
    handlers: {
      "resources/list": ({ cursor = "0" }: { cursor?: string }, { caller }: Call) => {
        if (!/^\d{1,6}$/.test(cursor)) throw invalidParams("Invalid cursor: pass nextCursor of the previous page.");
        const offset = Number(cursor);
        const { items, total } = listReports(ctx, caller.org, {}, { limit: pageRows, offset });
        const next = offset + pageRows;
        return {
          resources: items.map((report) => ({
            uri: toReportUri(report.slug),
            name: report.slug,
            title: titleOfResource(report),
            mimeType,
          })),
          ...(next < total ? { nextCursor: String(next) } : {}),
        };
      },
      "resources/templates/list": () => ({
        resourceTemplates: [
          { uriTemplate: template, name: "report", title: "Report", description: "A report as Markdown", mimeType },
        ],
      }),
      "resources/read": ({ uri }: { uri: string }, call: Call) => ({ contents: [read(uri, call)] }),
    },
  };
}

export type ReportResources = ReturnType<typeof reportResources>;
