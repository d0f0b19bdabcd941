import { inProcessAgents, loadAgents } from "../agents/all.ts";
import { runChildAgent } from "../agents/child-main.ts";

/**
 * The hidden command `__agent`: the agent process that the service starts for each run. Ends the process. `early`: the process starts before a run
 * needs it, so it loads the code of these agents first.
 */
export async function runAgent({ early }: { early: "rules" | "model" | null }): Promise<never> {
  const stop = new AbortController();
  process.on("SIGTERM", () => stop.abort(new Error("stopped by the service")));
  const out = Bun.stdout.writer();
  const write = async (text: string) => {
    out.write(text);
    await out.flush();
  };
  try {
    if (early) await loadAgents(early);
    await runChildAgent(inProcessAgents(process.env), {
      input: Bun.stdin.stream(),
      write,
      signal: stop.signal,
      now: Date.now,
    });
    process.exit(0);
  } catch (error) {
    await Bun.write(Bun.stderr, `${(error instanceof Error && error.stack) || error}\n`);
    process.exit(1);
  }
}
