import type { Command } from "commander";
import { addApiOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { addReportFormat, type ReportFormat, toReportText } from "./report-screen.ts";
import { print, printStyled, toJson } from "./terminal.ts";

/** Adds `report`: prints a report. */
export function addReport(program: Command, useApi: UseApi): void {
  addApiOptions(
    addReportFormat(program.command("report <slug>").description("Print a report")),
    "Print the report as JSON",
    "report first-query-7f3a91c2",
  ).action((slug: string, { json, format, ...address }: ServiceAddress & ReportFormat & { json?: boolean }) =>
    useApi(address, async (api) => {
      const report = await api.request("GET /reports/{slug}", { path: { slug } });
      if (json) print(toJson(report, 2));
      else printStyled(toReportText(report, { format }, { isStored: true, fullReportHint: report.url }));
    }),
  );
}
