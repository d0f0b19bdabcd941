import { commandsOf, isInspection } from "./call-actions.ts";
import { type EventOf, type Http, hasFailed, readingTools } from "./events.ts";
import type { Hosts } from "./hosts.ts";
import { isDocumented, wordsByLine } from "./judge/product-programs.ts";
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
  const isAnswer = (http: Http) =>
    http.id !== null && !failedIds.has(http.id) && !hasFailed(http) && hosts.isProduct(http);
  if (requests.some(isAnswer)) return true;
  const docsLines = results
    .filter(({ tool }) => readingTools.includes(tool))
    .flatMap(({ output }) => (typeof output?.text === "string" ? wordsByLine(output.text) : []));
  const isShown = ({ program, subcommand }: ReturnType<typeof commandsOf>[number]) =>
    !isInspection(program) && isDocumented({ docsLines }, [program, subcommand]);
  return calls.some(({ id, tool, input }) => {
    if (failedIds.has(id)) return false;
    if (tool === "run_command") return typeof input?.command === "string" && commandsOf(input.command).some(isShown);
    // Agents prefix the tools of an MCP server with its name, each in its own way.
    return mcpServers.some((server) => lettersAndDigitsOf(tool).includes(lettersAndDigitsOf(server)));
  });
}
