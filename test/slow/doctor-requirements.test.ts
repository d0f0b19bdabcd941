import { beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildExecutable, call, emptyFolder } from "../support/executable.ts";

beforeAll(buildExecutable, 300_000);

/** Installs a package with a Node.js script in a folder. Returns the folder of its command. */
function install(name: string, command: string, manifest: object): string {
  const folder = join(emptyFolder(), "node_modules");
  const script = join(folder, name, "cli.js");
  mkdirSync(dirname(script), { recursive: true });
  mkdirSync(join(folder, ".bin"));
  writeFileSync(join(folder, name, "package.json"), JSON.stringify({ name, version: "1.0.0", ...manifest }));
  writeFileSync(script, "#!/usr/bin/env node\n", { mode: 0o755 });
  symlinkSync(script, join(folder, ".bin", command));
  return join(folder, ".bin");
}

async function checksWith(
  folder: string,
): Promise<{ check: string; subject: string; state: string; detail: string }[]> {
  const { stdout } = await call(["doctor", "--json"], {
    cwd: emptyFolder(),
    env: { PATH: `${folder}:${process.env.PATH}` },
  });
  return JSON.parse(stdout);
}

const packageName = "@mariozechner/pi-coding-agent";

test("the doctor names the version of Node.js that an agent asks for", async () => {
  const checks = await checksWith(install(packageName, "pi", { engines: { node: ">=999.1" } }));
  const ofAgent = checks.filter(({ subject }) => subject === "pi");
  expect(ofAgent.map(({ state }) => state)).toEqual(["ok", "warning"]);
  expect(ofAgent[1]?.detail).toContain(">=999.1");
});

test("and says nothing about a version that fits", async () => {
  const checks = await checksWith(install(packageName, "pi", { engines: { node: ">=18" } }));
  expect(checks.filter(({ subject }) => subject === "pi").map(({ state }) => state)).toEqual(["ok"]);
});

test.if(!existsSync("/usr/bin/rg") && !existsSync("/usr/local/bin/rg"))(
  "the doctor names the program that an agent lacks, and how to install it",
  async () => {
    const folder = emptyFolder();
    writeFileSync(join(folder, "opencode"), "#!/bin/sh\necho 1.0.0\n", { mode: 0o755 });
    const missing = (await checksWith(folder)).filter(
      ({ subject, state }) => subject === "opencode" && state === "warning",
    );
    expect(missing).toMatchObject([{ cause: "agent_incomplete", detail: expect.stringContaining("ripgrep") }]);
  },
);
