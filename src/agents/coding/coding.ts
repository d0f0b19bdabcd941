import type { ModelProvider } from "../../config/model-settings.ts";
import type { Agent, AgentEvent } from "../agent.ts";
import { createChannel } from "../llm/channel.ts";
import { supportedOptions } from "./agent-options.ts";
import { canUseMcp } from "./mcp-servers.ts";
import type { Preset } from "./preset.ts";
import { findProgram } from "./program.ts";

const mib = 1024 * 1024;

/** A coding agent that may be installed on this machine. Each check looks for it on `path`. */
export function createCodingAgent(preset: Preset, { path }: { path: string }): Agent {
  const { id, name, providers, memoryMb, revision, hosts, blockedHosts } = preset;
  const describe = () => {
    const program = findProgram(preset, path);
    // Like a new version, a changed preset may change what the agent does.
    const version = "missing" in program ? "none" : `${program.version}+${revision}`;
    return {
      id,
      version,
      model: null,
      kind: "model",
      providers: Object.keys(providers) as ModelProvider[],
      lacks: canUseMcp(preset) ? [] : (["mcpServers"] as const),
      options: supportedOptions(preset),
      hosts,
      blockedHosts,
      ...(preset.login && { login: preset.login }),
      memoryBytes: memoryMb * mib,
      firstRequestTokens: preset.firstRequestTokens ?? undefined,
    } as const;
  };
  return {
    describe,
    preflight() {
      const program = findProgram(preset, path);
      return [
        "missing" in program
          ? {
              what: name,
              isMet: false,
              detail: program.missing,
              ...(preset.install !== null && { install: preset.install }),
            }
          : { what: name, isMet: true, detail: program.path },
      ];
    },
    async *run(task, context) {
      // Loaded when it runs. The service itself only needs its description.
      const { runSession } = await import("./session.ts");
      const { mountWorkspace } = await import("../sandbox/workspace.ts");
      const { prepareToJoinGroups } = await import("../sandbox/control-group.ts");
      const channel = createChannel<AgentEvent>();
      const work = async () => {
        prepareToJoinGroups();
        await using mounted = await mountWorkspace(task, context);
        const { version } = describe();
        await runSession({ preset, path, version }, task, mounted.context, channel.push);
      };
      work().then(channel.end, channel.fail);
      yield* channel.items;
    },
  };
}
