import { expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const sandbox = join(import.meta.dir, "..", "..", "src", "agents", "sandbox", "sandbox.ts");
/** Runs a command with network access, which needs the program's own file in the sandbox. */
const code = `
  const { runSandboxed } = await import(${JSON.stringify(sandbox)});
  await Bun.stdin.text();
  const server = Bun.serve({ unix: process.env.SOCKET, fetch: () => new Response("answer") });
  const box = runSandboxed({ argv: ["curl", "-s", "http://127.0.0.1:8801/"], sockets: { gateway: process.env.SOCKET } });
  console.log(await new Response(box.stdout).text(), await new Response(box.stderr).text(), (await box.ended).exitCode);
  await server.stop(true);
  process.exit(0);`;

test.each(["replaced", "removed"])(
  "a process can start sandboxes after its executable was %s",
  async (how) => {
    const folder = mkdtempSync(join(tmpdir(), "replaced-"));
    const program = join(folder, "evald");
    copyFileSync(process.execPath, program);
    const child = Bun.spawn([program, "-e", code], {
      env: { ...process.env, SOCKET: join(folder, "socket"), TMPDIR: folder },
      stdio: ["pipe", "pipe", "inherit"],
    });
    if (how === "removed") rmSync(program);
    else {
      writeFileSync(join(folder, "new"), "#!/bin/sh\necho another version\n", { mode: 0o755 });
      renameSync(join(folder, "new"), program);
    }
    await child.stdin.end();
    expect((await new Response(child.stdout).text()).trim().split(/\s+/)).toEqual(["answer", "0"]);
    expect(readdirSync(folder).filter((name) => name.startsWith("evald-program-"))).toEqual([]);
    rmSync(folder, { recursive: true });
  },
  300_000,
);
