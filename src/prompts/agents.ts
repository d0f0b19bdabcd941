import type { PromptAgent } from "../db/tables/prompts.ts";
import { invalidField } from "../errors.ts";
import type { PromptInput } from "./schema.ts";

type AgentFields = { agent: string | null; model: string | null; agents: PromptAgent[] | null };

/**
 * The agents of a prompt after a change. Several are kept as a list, of which `agent` and `model` are the first; one agent
 * or a new `agent` or `model` alone replace the list. Throws bad_request that names the field.
 */
export function agentsAfterChange({ agents, agent, model }: Partial<PromptInput>, current: AgentFields): AgentFields {
  const list = agents?.map((entry): PromptAgent => ({ agent: entry.agent, model: entry.model ?? null }));
  const [first] = list ?? [];
  if (!list || !first) {
    const isKept = agents === undefined && agent === undefined && model === undefined;
    return {
      agent: agent === undefined ? current.agent : agent,
      model: model === undefined ? current.model : model,
      agents: isKept ? current.agents : null,
    };
  }
  if (agent !== undefined && agent !== first.agent)
    throw invalidField("agents", `the first entry is ${first.agent}, but agent is ${agent}; omit agent`);
  if (model !== undefined && model !== first.model)
    throw invalidField("agents", `the first entry has the model ${first.model}, but model is ${model}; omit model`);
  return { ...first, agents: list.length > 1 ? list : null };
}
