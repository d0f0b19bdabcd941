import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..");
export const executable = join(root, "dist", "evald");

/** The same executable with an agent that finishes immediately, built by `buildInstant`. */
export const instant = join(root, "dist", "instant");

async function build(file: string, command: string[], entry: string): Promise<void> {
  const builtAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = [
    ...new Bun.Glob("{src,drizzle,patches,release}/**/*").scanSync(root),
    entry,
    "package.json",
    "bun.lock",
  ];
  if (sources.every((source) => statSync(join(root, source)).mtimeMs < builtAt)) return;
  const build = Bun.spawnSync([process.execPath, ...command], { cwd: root });
  if (!build.success) throw new Error(`the build failed:\n${build.stderr}`);
}

/** Builds the executable if it is missing or older than a source file. */
export const buildExecutable = (): Promise<void> => build(executable, ["run", "build"], "src/main.ts");

/** Builds `instant` in the same way, if it is missing or older than a source file. */
export async function buildInstant(): Promise<void> {
  const entry = "test/support/instant.ts";
  await build(instant, ["release/compile.ts", entry, "dist/instant"], entry);
}

/** Builds both. */
export async function buildExecutables(): Promise<void> {
  await buildExecutable();
  await buildInstant();
}

export const emptyFolder = (): string => mkdtempSync(join(tmpdir(), "evald-test-"));

/** `file`: another executable; `under`: the command that runs it, such as strace. */
type Call = { cwd: string; env?: Record<string, string>; file?: string; under?: string[] };

const cleanEnv = (env: Record<string, string> = {}) => ({ PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...env });

/** Runs one command to its end. */
export async function call(args: string[], { cwd, env, file = executable, under = [] }: Call) {
  const child = Bun.spawn([...under, file, ...args], {
    cwd,
    env: cleanEnv(env),
    stdout: "pipe",
    stderr: "pipe",
    stdin: "ignore",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Starts the service and waits until it prints its URL. Throws with its stderr if it exits before. */
export async function serve({ cwd, env, file = executable, args = [] }: Omit<Call, "under"> & { args?: string[] }) {
  const child = Bun.spawn([file, "serve", ...args], {
    cwd,
    env: cleanEnv({ EVALD_PORT: "0", EVALD_WELCOME: "0", EVALD_LOG_LEVEL: "info", ...env }),
    stdout: "pipe",
    stderr: "pipe",
    stdin: "ignore",
  });
  const out = follow(child.stdout, "stdout");
  const err = follow(child.stderr, "stderr");
  const url = (await err.said(/^listening on (http:\/\/\S+)$/m))[1] as string;
  return {
    url,
    pid: child.pid,
    said: err.said,
    printed: out.said,
    stderr: err.text,
    stdout: out.text,
    /** Sends a signal and waits for the end; returns the exit code. */
    async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number> {
      child.kill(signal);
      await child.exited;
      await Promise.all([out.ended, err.ended]);
      return child.exitCode ?? 128;
    },
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    exited: child.exited,
  };
}

/** Collects the output of a process while it runs. */
function follow(stream: ReadableStream<Uint8Array>, name: string) {
  let text = "";
  const listeners = new Set<() => void>();
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      text += decoder.decode(bytes, { stream: true });
      for (const listener of listeners) listener();
    }
  })();

  /** The first match of a pattern, now or later. Throws if the process exits without one. */
  async function said(pattern: RegExp): Promise<RegExpExecArray> {
    let check = () => {};
    const found = new Promise<RegExpExecArray>((resolve) => {
      check = () => {
        const match = pattern.exec(text);
        if (match) resolve(match);
      };
      listeners.add(check);
      check();
    });
    const never = ended.then(() => {
      throw new Error(`the process ended and ${name} has no ${pattern}:\n${text}`);
    });
    try {
      return await Promise.race([found, never]);
    } finally {
      listeners.delete(check);
    }
  }
  return { said, text: () => text, ended };
}

/** Starts a worker of the executable with one slot, in a folder of its own that it also uses for temporary files. */
export function startWorker(env: Record<string, string>) {
  const folder = emptyFolder();
  const child = Bun.spawn([executable, "worker", "--slots", "1"], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", TMPDIR: folder, ...env },
    ...{ stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  });
  // A log that nobody reads would stop the worker once its pipe is full.
  return { child, folder, log: new Response(child.stderr).text() };
}

/** Everything in the files of a folder. */
export const filesIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");

/** Creates an organization, a key and a prompt in the data folder of `cwd`, in use or not; returns the IDs and the key. */
export async function furnish(cwd: string) {
  const ask = async (...args: string[]) => (await call(args, { cwd })).stdout.trim();
  await ask("org", "create", "Acme");
  const key = await ask("key", "create", "--name", "test");
  return { key, promptId: await ask("prompt", "create", "--text", "See https://docs.test/") };
}

/** A client of the REST API with a key. */
export const client = (baseUrl: string, key: string) =>
  async function ask(method: string, path: string, body?: unknown) {
    const response = await fetch(new URL(path, `${baseUrl}/`), {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };

/** Polls a run until it has one of the given statuses. */
export async function untilRun(ask: ReturnType<typeof client>, runId: string, ...states: string[]) {
  for (;;) {
    const { body } = await ask("GET", `/api/v1/runs/${runId}`);
    if (states.includes(body.status)) return body;
    // The pause keeps the service free for other work.
    await Bun.sleep(20);
  }
}
