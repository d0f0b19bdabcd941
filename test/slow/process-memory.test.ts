import { expect, test } from "bun:test";
import { join } from "node:path";
import { findInMemory } from "../support/memory.ts";

test("the end of an agent's process leaves no environment of other processes in memory", async () => {
  const secret = `sk-operator-${crypto.randomUUID()}`;
  const older = Bun.spawn(["sleep", "600"], { env: { PATH: process.env.PATH ?? "", EVALD_TEST_KEY: secret } });
  // A process that starts and ends agents, as a worker does, and then waits.
  const script = `
    const { startProcess } = await import(${JSON.stringify(join(import.meta.dir, "../../src/agents/process.ts"))});
    const mine = startProcess(["sh", "-c", "setsid sleep 600 & echo started; read line"], { PATH: process.env.PATH });
    await mine.stdout.getReader().read();
    // Younger than the process of the agent.
    const younger = Bun.spawn(["sh", "-c", "export EVALD_TEST_KEY=$(cat); exec sleep 601"], { stdin: "inherit" });
    await Bun.sleep(200);
    await mine.end("ask");
    console.log(younger.pid);
    await Bun.sleep(600_000);
  `;
  const young = `sk-younger-${crypto.randomUUID()}`;
  const worker = Bun.spawn([process.execPath, "-e", script], {
    ...{ stdin: Buffer.from(young), stdout: "pipe", env: { PATH: process.env.PATH ?? "" } },
  });
  const pid = Number(new TextDecoder().decode((await worker.stdout.getReader().read()).value));
  try {
    const search = findInMemory(worker.pid, [secret, young, "sk-operator-", "AGENT_PROCESS"]);
    expect(search.found.filter((text) => text === secret || text === young)).toEqual([]);
    expect(search.found).toContain("AGENT_PROCESS");
    expect(search.bytes).toBeGreaterThan(1_000_000);
  } finally {
    worker.kill("SIGKILL");
    older.kill("SIGKILL");
    process.kill(pid, "SIGKILL");
  }
}, 300_000);
