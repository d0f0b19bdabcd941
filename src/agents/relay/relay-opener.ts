import { AgentFailure, type SandboxMeans } from "../agent.ts";
import type { Relay, RelayTerms } from "./relay.ts";

/** The relay of a run, which is opened when it is first needed, because many runs need none. */
export type RelayOpener = {
  /** Throws AgentFailure. */
  open(): Promise<Relay>;
  [Symbol.asyncDispose](): Promise<void>;
};

export function createRelayOpener(sandbox: SandboxMeans, terms: RelayTerms): RelayOpener {
  let relay: Promise<Relay> | undefined;

  async function start(): Promise<Relay> {
    try {
      const { openRelay } = await import("./relay.ts");
      return await openRelay({ ...sandbox, ...terms });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new AgentFailure("infrastructure", `the proxy for commands could not be started: ${reason}`, {
        retryable: true,
      });
    }
  }

  return {
    open: () => (relay ??= start()),
    [Symbol.asyncDispose]: async () => (await relay?.catch(() => null))?.[Symbol.asyncDispose](),
  };
}
