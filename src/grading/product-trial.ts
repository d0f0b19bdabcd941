import { commandsOf, isInspection } from "./call-actions.ts";
import { type EventOf, type Http, hasFailed } from "./events.ts";
import type { Hosts } from "./hosts.ts";
import { isDocumented, linesOf } from "./judge/product-programs.ts";

const readingTools = ["fetch_page", "search_docs", "open_page", "read_file", "list_files", "write_file"];
const speakingTools = ["ask_human", "report_friction", "finish", "check_declared"];
const requestingTools = ["http_request", "browse"];

type Trial = {
  calls: EventOf<"tool_call">[];
  results: EventOf<"tool_result">[];
  requests: Http[];
  hosts: Hosts;
  /** IDs of calls that failed. */
  failedIds: Set<string | null>;
};

/**
 * Whether the agent tried the product: the product answered a request, or a command ran that the docs show, or a tool ran that can only be the
 * product's. Reading, writing files and running anything else is none of it.
 */
export function hasTriedProduct({ calls, results, requests, hosts, failedIds }: Trial): boolean {
  const isAnswer = (http: Http) =>
    http.id !== null && !failedIds.has(http.id) && !hasFailed(http) && hosts.isProduct(http);
  if (requests.some(isAnswer)) return true;
  const docsLines = results
    .filter(({ tool }) => readingTools.slice(0, 3).includes(tool))
    .flatMap(({ output }) => (typeof output?.text === "string" ? linesOf(output.text) : []));
  const isShown = ({ program, verb }: ReturnType<typeof commandsOf>[number]) =>
    !isInspection(program) && isDocumented({ docsLines }, [program, verb]);
  return calls.some(({ id, tool, input }) => {
    if (failedIds.has(id)) return false;
    if (tool === "run_command") return typeof input?.command === "string" && commandsOf(input.command).some(isShown);
    return ![...readingTools, ...speakingTools, ...requestingTools].includes(tool);
  });
}
