import { runSandboxed, type SandboxRun } from "../../src/agents/sandbox/sandbox.ts";

/** Runs one command in a sandbox to its end. */
export async function inSandbox(run: SandboxRun) {
  const sandboxed = runSandboxed(run);
  sandboxed.stdin.end();
  const [end, out, err] = await Promise.all([
    sandboxed.ended,
    new Response(sandboxed.stdout).text(),
    new Response(sandboxed.stderr).text(),
  ]);
  return { ...end, out, err, boundBy: sandboxed.boundBy };
}

// As a program, it makes one run with JSON as input and output. It prints "up" once the command printed it.
if (import.meta.main) {
  const run = JSON.parse(process.argv[2] ?? "{}") as SandboxRun;
  if (process.argv[3] === "follow") {
    const { stdout } = runSandboxed(run);
    for await (const bytes of stdout) process.stdout.write(bytes);
  } else console.log(JSON.stringify(await inSandbox(run)));
}
