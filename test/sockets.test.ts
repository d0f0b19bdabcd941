import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTemporaryFolder } from "../src/agents/sockets.ts";
import { testApp } from "./support/app.ts";

// A temporary folder of its own, because every service that starts meanwhile sweeps the common one.
const common = process.env.TMPDIR;
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "evald-test-"));
  process.env.TMPDIR = folder;
});
afterAll(() => {
  if (common === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = common;
  rmSync(folder, { recursive: true });
});

const children: Bun.Subprocess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** A process of another service that listens on a socket. */
async function listener() {
  const { folder, socketPath } = createTemporaryFolder("egress");
  const code = "require('net').createServer().listen(process.argv[1], () => console.log('up'))";
  const child = Bun.spawn([process.execPath, "-e", code, socketPath], { stdout: "pipe" });
  children.push(child);
  await child.stdout.getReader().read();
  return { folder, child };
}

test("sockets of a killed service are removed at the next start, and the sockets of a running one stay", async () => {
  const [killed, alive] = await Promise.all([listener(), listener()]);
  const { folder: young } = createTemporaryFolder("gateway");
  killed.child.kill("SIGKILL");
  await killed.child.exited;
  expect(existsSync(killed.folder)).toBe(true);
  const { service } = testApp();
  await service.start();
  await service.stop(0);
  expect([killed.folder, alive.folder, young].map((folder) => existsSync(folder))).toEqual([false, true, true]);
  alive.child.kill("SIGKILL");
  await alive.child.exited;
  utimesSync(young, 0, 0);
  const later = testApp();
  await later.service.start();
  await later.service.stop(0);
  expect([alive.folder, young].map((folder) => existsSync(folder))).toEqual([false, false]);
});
