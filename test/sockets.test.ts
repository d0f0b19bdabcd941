import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { makeSocketFolder } from "../src/agents/sockets.ts";
import { testApp } from "./support/app.ts";

/** A process of another service that listens on a socket. */
async function listener() {
  const { folder, socketPath } = makeSocketFolder("egress");
  const code = "require('net').createServer().listen(process.argv[1], () => console.log('up'))";
  const child = Bun.spawn([process.execPath, "-e", code, socketPath], { stdout: "pipe" });
  await child.stdout.getReader().read();
  return { folder, child };
}

test("sockets of a killed service are removed at the next start; those of a running one stay", async () => {
  const [killed, alive] = await Promise.all([listener(), listener()]);
  const { folder: young } = makeSocketFolder("gateway");
  killed.child.kill("SIGKILL");
  await killed.child.exited;
  expect(existsSync(killed.folder)).toBe(true);
  const { service } = testApp();
  await service.start();
  await service.stop(0);
  expect([killed.folder, alive.folder, young].map((folder) => existsSync(folder))).toEqual([false, true, true]);
  alive.child.kill("SIGKILL");
  await alive.child.exited;
  const later = testApp({ now: () => Date.now() + 3600_000 });
  await later.service.start();
  await later.service.stop(0);
  expect([alive.folder, young].map((folder) => existsSync(folder))).toEqual([false, false]);
});
