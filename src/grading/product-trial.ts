import type { Action } from "./actions/action.ts";
import { actionsOfShell, onlyHelps } from "./actions/call.ts";
import { isClient } from "./actions/request.ts";
import { programOf } from "./actions/shell.ts";
import { type EventOf, type Http, hasFailed, readingTools } from "./events.ts";
import type { Hosts } from "./hosts.ts";
import { isDocumented, withoutOptions, wordsByLine } from "./judge/product-programs.ts";
import { lettersAndDigitsOf } from "./judge/repetition.ts";

type TrialEvidence = {
  calls: EventOf<"tool_call">[];
  results: EventOf<"tool_result">[];
  requests: Http[];
  hosts: Hosts;
  /** Names of the MCP servers of the workspace, which belong to the product. */
  mcpServers: string[];
  /** IDs of calls that failed. */
  failedIds: Set<string | null>;
};

/**
 * Whether the agent tried the product: the product answered a request, or a command ran that the docs show, or a tool of an
 * MCP server ran. Reading, writing files and running anything else don't count.
 */
export function hasTriedProduct({ calls, results, requests, hosts, mcpServers, failedIds }: TrialEvidence): boolean {
  const isProductAnswer = (http: Http) =>
    http.id !== null && !failedIds.has(http.id) && !hasFailed(http) && hosts.isProduct(http);
  if (requests.some(isProductAnswer)) return true;
  const docsLines = results
    .filter(({ tool }) => readingTools.includes(tool))
    .flatMap(({ output }) => (typeof output?.text === "string" ? wordsByLine(output.text) : []));
  const isShownByDocs = (action: Action) => {
    if (action.kind !== "command") return false;
    const program = programOf(action.words);
    // A client only sends requests, and the product's answers to them are known.
    if (onlyHelps(program) || isClient(program)) return false;
    return isDocumented(docsLines, [program, ...withoutOptions(action.words.slice(1))]);
  };
  return calls.some(({ id, tool, input }) => {
    if (failedIds.has(id)) return false;
    if (tool === "run_command")
      return typeof input?.command === "string" && actionsOfShell(input.command).some(isShownByDocs);
    // Agents prefix the tools of an MCP server with its name, each in its own way.
    return mcpServers.some((server) => lettersAndDigitsOf(tool).includes(lettersAndDigitsOf(server)));
  });
}
