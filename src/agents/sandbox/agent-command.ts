import { chownSync, existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { ownCommand } from "../process.ts";
import { makeSocketFolder } from "../sockets.ts";
import { ownExecutable } from "./own-executable.ts";
import { asNobody, type Bind, fileSystem, nobody, ownProgram } from "./sandbox.ts";
import { seccompFilter } from "./seccomp.ts";
import { workspacesIn } from "./workspace.ts";

const mib = 1024 * 1024;
/** Maximum size of each file system in memory is a quarter of this. An agent without a workspace stores nothing. */
const memoryBytes = 64 * mib;
const certificates = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

type Env = Record<string, string | undefined>;

/**
 * The command that runs this executable with `args` in a sandbox for a process that parses pages, like that of commands. It sees
 * /usr, a few files of /etc, its own program and the socket of the network proxy, and can only write to memory. Null without bubblewrap.
 */
export function inAgentSandbox(
  args: string[],
  env: Env,
  socketPath: string | null,
  program = ownProgram(),
): string[] | null {
  const bwrap = Bun.which("bwrap");
  if (!bwrap) return null;
  const asRoot = process.getuid?.() === 0;
  const trusted = certificates.flatMap((name) => {
    const path = env[name];
    return path !== undefined && existsSync(path) ? [{ name, path }] : [];
  });
  const binds: Bind[] = [
    ...program.binds,
    ...trusted.map(({ path }) => ({ from: realpathSync(path), to: path })),
    ...(socketPath === null ? [] : [{ from: socketPath, to: socketPath }]),
  ];
  if (asRoot && socketPath !== null) chownSync(socketPath, nobody, nobody);
  const options = [
    ...fileSystem(asRoot ? binds.map((bind, i) => ({ ...bind, from: `/run/${i}` })) : binds, { memoryBytes }),
    ...trusted.flatMap(({ name, path }) => ["--setenv", name, path]),
    ...["--unsetenv", "BUN_FEATURE_FLAG_NO_ORPHANS", "--remount-ro", "/", "--chdir", "/"],
  ];
  return filtered((seccomp) => {
    const inner = [bwrap, ...options, ...seccomp, "--", ...program.argv, ...args];
    return asRoot ? [...asNobody(bwrap, binds), ...inner] : inner;
  });
}

/**
 * The command that runs `argv` in a sandbox for a process that starts further sandboxes: it sees the machine's files read-only and not the
 * data directory, other processes, keyrings or a network, and writes only to workspaces and the temporary folder. Null without
 * bubblewrap, and for root: a process that starts sandboxes as another user needs privileges by which it can leave this one.
 */
function inOuterSandbox(argv: string[], dataDir: string | null): string[] | null {
  const bwrap = Bun.which("bwrap");
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  if (!bwrap || uid === 0) return null;
  const data = dataDir !== null && existsSync(dataDir) ? resolve(dataDir) : null;
  const hidden: string[] = [];
  if (data !== null) {
    const workspaces = workspacesIn(data);
    mkdirSync(workspaces, { recursive: true, mode: 0o700 });
    hidden.push("--tmpfs", data, "--bind", workspaces, workspaces, "--remount-ro", data);
  }
  const writable = [...new Set(["/tmp", tmpdir()])].filter((path) => existsSync(path));
  const own = [...writable, "/sys/fs/cgroup"].flatMap((path) => ["--bind-try", path, path]);
  const options = [
    ...["--unshare-user", "--uid", `${uid}`, "--gid", `${gid}`],
    ..."--unshare-net --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --new-session --cap-drop ALL".split(
      " ",
    ),
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", ...own],
    ...[...hidden, "--unsetenv", "BUN_FEATURE_FLAG_NO_ORPHANS", "--chdir", "/"],
  ];
  return filtered((seccomp) => [bwrap, ...options, ...seccomp, "--", ...argv]);
}

/** The command that runs an agent with a model in such a sandbox; null without one. */
export function inModelAgentSandbox(dataDir: string): string[] | null {
  const [, ...args] = ownCommand();
  return inOuterSandbox([ownExecutable(), ...args], dataDir);
}

/** Finds out whether this machine allows a sandbox in such a sandbox. Resolves to null, or to the reason why not. */
export async function testModelAgentSandbox(): Promise<string | null> {
  const nested = "bwrap --unshare-all --unshare-user --disable-userns --ro-bind / / --proc /proc true".split(" ");
  const command = inOuterSandbox(nested, null);
  if (command) return await probe(command, {});
  return process.getuid?.() === 0 ? "evald runs as root" : "bubblewrap is not installed";
}

/** A command with the options by which bubblewrap sets the filter. */
function filtered(toCommand: (seccomp: string[]) => string[]): string[] {
  const filter = seccompFilter();
  if (!filter) return toCommand([]);
  return ["/bin/sh", "-c", 'unset PWD; exec 3<"$0" "$@"', filterFile(filter), ...toCommand(["--seccomp", "3"])];
}

/** Finds out whether this machine allows it, by running this executable. Resolves to null, or to the reason why not. */
export async function testAgentSandbox(env: Env): Promise<string | null> {
  const command = inAgentSandbox(["--version"], env, null);
  if (command === null) return "bubblewrap is not installed";
  return await probe(command, env);
}

async function probe(command: string[], { PATH = "/usr/sbin:/usr/bin:/sbin:/bin" }: Env): Promise<string | null> {
  const child = Bun.spawn(command, { cwd: "/", env: { PATH }, stdio: ["ignore", "ignore", "pipe"] });
  const [code, said] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  return code === 0 ? null : said.trim().split("\n")[0] || `it exited with code ${code}`;
}

let kept: string | null = null;

/** The filter as a file, which exists as long as this process. */
function filterFile(filter: Uint8Array): string {
  if (kept !== null && existsSync(kept)) return kept;
  const { folder } = makeSocketFolder("program");
  kept = `${folder}/seccomp`;
  writeFileSync(kept, filter);
  // The next start of the service removes what a killed process leaves.
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return kept;
}
