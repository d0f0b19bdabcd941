import { runInfrastructureStep, type SandboxResources } from "../agent.ts";
import type { Relay, RelayRun } from "./relay.ts";

/** The relay of a run, which is opened when it is first needed, because many runs need none. */
export function createRelayOpener(sandbox: SandboxResources, relayRun: RelayRun) {
  let relay: Promise<Relay> | undefined;
  const start = async () => {
    const { openRelay } = await import("./relay.ts");
    return await openRelay({ ...sandbox, ...relayRun });
  };
  return {
    /** Throws AgentFailure. */
    open: (): Promise<Relay> =>
      (relay ??= runInfrastructureStep("workspace_failed", "the proxy for commands could not be started", start)),
    [Symbol.asyncDispose]: async () => (await relay?.catch(() => null))?.[Symbol.asyncDispose](),
  };
}
