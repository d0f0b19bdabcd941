import type { Command } from "commander";
import { unavailable } from "../errors.ts";
import { isId } from "../schema.ts";
import { type Api, findPromptId, isNotFound } from "./api.ts";
import { type ApiOptions, addServiceOptions, type Connection, toServiceUrl, type UseApi } from "./connection.ts";
import { findRunningService } from "./running.ts";
import { print, say, toJson } from "./terminal.ts";

/** Adds `open`: opens a page of the service in the browser. */
export function addOpen(program: Command, connection: Connection, useApi: UseApi): void {
  const command = program
    .command("open [what]")
    .description("Open the service, or a report, run, gate or prompt, in the browser, and print the URL to stdout")
    .option("--print", "Only print the URL")
    .option("--json", "Print the URL as JSON");
  addServiceOptions(command)
    .addHelpText("after", "\nExamples:\n  evald open\n  evald open first-query-7f3a91c2")
    .action(async (target: string | undefined, options: ApiOptions & { print?: boolean }) => {
      const { print: printsOnly, json, ...address } = options;
      const config = connection.configOf();
      const base = toServiceUrl(address, connection) ?? findRunningService(config.dataDir)?.url ?? null;
      if (base === null)
        throw unavailable("No service is running on the data directory. Start it with evald serve, or pass --url.");
      const path = target === undefined ? "/" : await useApi(address, (api) => findPath(api, target));
      const pageUrl = base + path;
      print(json ? toJson({ url: pageUrl }) : pageUrl);
      if (!printsOnly && !openInBrowser(pageUrl)) say("No browser was found. Open the URL yourself.");
    });
}

/** The path of the page for a slug, ID or title. Throws not_found, and bad_request for a title that several prompts have. */
async function findPath(api: Api, target: string): Promise<string> {
  const pagesById = [
    ["runs", () => api.request("GET /runs/{runId}", { path: { runId: target } })],
    ["gates", () => api.request("GET /gates/{gateId}", { path: { gateId: target } })],
    ["prompts", () => api.request("GET /prompts/{promptId}", { path: { promptId: target } })],
  ] as const;
  const pagesBySlug = [["reports", () => api.request("GET /reports/{slug}", { path: { slug: target } })]] as const;
  for (const [path, get] of isId(target) ? pagesById : pagesBySlug)
    if (await exists(get)) return `/${path}/${encodeURIComponent(target)}`;
  return `/prompts/${await findPromptId(api, target, { archived: true })}`;
}

async function exists(get: () => Promise<unknown>): Promise<boolean> {
  try {
    await get();
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Opens a URL in the default browser. Returns false if this machine has no program to open it. */
function openInBrowser(url: string): boolean {
  const commands: Partial<Record<NodeJS.Platform, string[]>> = {
    darwin: ["open"],
    win32: ["rundll32.exe", "url.dll,FileProtocolHandler"],
  };
  const [program = "", ...args] = commands[process.platform] ?? ["xdg-open"];
  if (!Bun.which(program, { PATH: process.env.PATH ?? "" })) return false;
  Bun.spawn([program, ...args, url], { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).unref();
  return true;
}
