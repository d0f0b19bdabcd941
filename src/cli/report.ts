import type { Command } from "commander";
import { reportMarkdown } from "../reports/markdown.ts";
import { addApiOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, toJson } from "./terminal.ts";

/** Adds `report`: prints a report. */
export function addReport(program: Command, useApi: UseApi): void {
  addApiOptions(
    program.command("report <slug>").description("Print a report as Markdown"),
    "Print the report as JSON",
    "report first-query-7f3a91c2",
  ).action((slug: string, { json, ...address }: ServiceAddress & { json?: boolean }) =>
    useApi(address, async (api) => {
      const report = await api.request("GET /reports/{slug}", { path: { slug } });
      print(json ? toJson(report, 2) : reportMarkdown(report).trimEnd());
    }),
  );
}
