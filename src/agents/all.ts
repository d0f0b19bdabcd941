import { version } from "../../package.json" with { type: "json" };
import type { Agent } from "./agent.ts";
import { createExplorer } from "./explorer/explorer.ts";

/** Every agent that this executable can send, by id; the first is the default. */
export const allAgents = (): Record<string, Agent> => ({ explorer: createExplorer({ version }) });
