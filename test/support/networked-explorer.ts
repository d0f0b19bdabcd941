import type { Agent } from "../../src/agents/agent.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";

/** The explorer with the network of an agent in a process of its own. */
export function networkedExplorer(version: string): Agent {
  const explorer = createExplorer({ version });
  return {
    ...explorer,
    async *run(task, context) {
      const egress = await context.openEgress?.();
      try {
        yield* explorer.run(task, { ...context, egress });
      } finally {
        egress?.close();
      }
    },
  };
}
