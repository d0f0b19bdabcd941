import type { ModelProvider } from "../../config/model-settings.ts";
import type { Agent, AgentEvent } from "../agent.ts";
import { createChannel } from "../llm/channel.ts";
import type { Preset } from "./preset.ts";
import { findProgram } from "./program.ts";

const mib = 1024 * 1024;
/** Every request that names an agent asks whether it is there. */
const rememberedMs = 1_000;

/** A coding agent that is installed on this machine, or may be: it is looked for on `path` whenever it is asked about. */
export function createCodingAgent(preset: Preset, { path }: { path: string }): Agent {
  const { id, name, providers, memoryMb, revision } = preset;
  let last: { found: ReturnType<typeof findProgram>; at: number } | null = null;
  const look = () => {
    if (last === null || performance.now() - last.at > rememberedMs)
      last = { found: findProgram(preset, path), at: performance.now() };
    return last.found;
  };
  const describe = () => {
    const found = look();
    // A changed preset may change what the agent does, as a new version may.
    const version = "missing" in found ? "none" : `${found.version}+${revision}`;
    const known = Object.keys(providers) as ModelProvider[];
    return { id, version, model: null, kind: "model", providers: known, memoryBytes: memoryMb * mib } as const;
  };
  return {
    describe,
    preflight() {
      const found = look();
      return [
        "missing" in found
          ? { what: name, isHere: false, detail: found.missing }
          : { what: name, isHere: true, detail: found.path },
      ];
    },
    async *run(task, context) {
      // Loaded where it works: the service only speaks of it.
      const { runSession } = await import("./session.ts");
      const channel = createChannel<AgentEvent>();
      const subject = { preset, path, version: describe().version };
      runSession(subject, task, context, channel.push).then(channel.end, channel.fail);
      yield* channel.items;
    },
  };
}
