import { chownSync, existsSync, openSync, realpathSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProgramFiles } from "../coding/program.ts";
import { asNobody, type Bind, bindsForNobody, fileSystem, listEtcFiles, nobody } from "./bubblewrap.ts";
import { createDelegatedCgroup, type DelegatedCgroup } from "./control-group.ts";
import { describeSandboxProblem, findSandboxProblem } from "./problems.ts";
import { ownProgram } from "./sandbox.ts";
import { seccompFilter } from "./seccomp.ts";
import { openStatusFile } from "./status-file.ts";

const mib = 1024 * 1024;
/** Each file system in memory has at most a quarter of this. Larger files belong into the folders of a run. */
const memoryBytes = 64 * mib;
const certificates = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

type Env = Record<string, string | undefined>;

/** What the process of one run gets from outside its sandbox: unix sockets of the service, and the folders of the run, to which it may write. */
export type ProcessAccess = { sockets: string[]; folders: string[] };

type Programs = Pick<ProgramFiles, "files" | "links">;

const noPrograms: Programs = { files: [], links: [] };

/** What a process needs to start further sandboxes: the programs that it runs in them, and a control group for these programs. */
type Nesting = { programs: Programs; group: DelegatedCgroup | null };

/**
 * A command, with the control group that its process joins and the status file of its sandbox, if it has them. When the process has ended, the caller
 * removes the group and closes the file.
 */
export type AgentCommand = { argv: string[]; group: DelegatedCgroup | null; status: number | null };

/** Descriptors of the files that bubblewrap gets open: the filter, its status, and the first file of /etc. */
const [filterDescriptor, statusDescriptor, firstDescriptor] = [3, 4, 5];
/** Shells read only one digit in front of `<`. Further files of /etc are left out. */
const maxDescriptor = 9;

/** Namespaces of a process that starts sandboxes. */
const nestingNamespaces = "--unshare-user --unshare-net --unshare-pid --unshare-ipc --unshare-uts";

type ProcessSandbox = {
  env: Env;
  /** null: the process starts no further sandboxes. */
  nesting: Nesting | null;
  access: ProcessAccess;
  /** The files of the executable. Default: this one. */
  executableBinds?: Bind[];
  /** The file descriptor of its status file, if it has one. */
  status?: number | null;
};

/**
 * The command that runs `argv` in a sandbox. It sees /usr, a few files of /etc, the executable and what its run needs. It has no network. It can
 * write only to the folders of its run and to memory. Null without bubblewrap.
 */
export function toSandboxCommand(
  argv: string[],
  { env, nesting, access, executableBinds = ownProgram().binds, status = null }: ProcessSandbox,
): string[] | null {
  const bwrap = Bun.which("bwrap");
  if (!bwrap) return null;
  const asRoot = process.getuid?.() === 0;
  const { sockets, folders } = access;
  const { files, links } = nesting?.programs ?? noPrograms;
  const { folders: groups = [], procsFiles = [] } = nesting?.group ?? {};
  const certificateFiles = certificates.flatMap((name) => {
    const path = env[name];
    return path !== undefined && existsSync(path) ? [{ name, path }] : [];
  });
  const binds: Bind[] = [
    ...executableBinds,
    ...certificateFiles.map(({ path }) => ({ from: realpathSync(path), to: path })),
    ...[...files, ...sockets].map((path) => ({ from: path, to: path })),
    ...folders.map((path) => ({ from: path, to: path, writable: true })),
  ];
  if (asRoot) for (const path of [...sockets, ...folders]) chownSync(path, nobody, nobody);
  const etcFiles = nesting ? listEtcFiles().slice(0, maxDescriptor - firstDescriptor + 1) : [];
  const options = [
    ...fileSystem(
      asRoot ? bindsForNobody(binds) : binds,
      memoryBytes,
      nesting && {
        namespaces: nestingNamespaces,
        etcFiles: new Map(etcFiles.map((path, i) => [path, firstDescriptor + i])),
      },
    ),
    ...links.flatMap(({ path, target }) => ["--symlink", target, path]),
    // Other groups are read-only. A process that could change them could kill the processes in them.
    ...(groups.length > 0 ? ["--ro-bind", "/sys/fs/cgroup", "/sys/fs/cgroup"] : []),
    ...groups.flatMap((path) => ["--bind", path, path]),
    ...certificateFiles.flatMap(({ name, path }) => ["--setenv", name, path]),
    ...["--unsetenv", "BUN_FEATURE_FLAG_NO_ORPHANS", "--remount-ro", "/", "--chdir", "/"],
  ];
  return withGroupsAndFiles(procsFiles, etcFiles, status, (fileOptions) => {
    const sandboxCommand = [bwrap, ...options, ...fileOptions, "--", ...argv];
    return asRoot ? [...asNobody(bwrap, binds), ...sandboxCommand] : sandboxCommand;
  });
}

/** The command that runs an agent in such a sandbox; null without one. `programs`: null if it starts no further sandboxes. */
export function agentCommand(env: Env, programs: Programs | null, access: ProcessAccess): AgentCommand | null {
  if (!Bun.which("bwrap")) return null;
  const group = programs && createDelegatedCgroup(process.getuid?.() === 0 ? nobody : null);
  const status = openStatusFile();
  const nesting = programs && { programs, group };
  const argv = toSandboxCommand([...ownProgram().argv, "__agent"], { env, nesting, access, status });
  return argv && { argv, group, status };
}

/** A command that first joins control groups and opens files. It passes bubblewrap the options for the filter and for the status file. */
function withGroupsAndFiles(
  procsFiles: string[],
  etcFiles: string[],
  status: number | null,
  toCommand: (options: string[]) => string[],
): string[] {
  const filter = seccompFilter();
  const joinScript = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 126; shift; done; shift; unset PWD';
  const redirections = [
    filter ? `${filterDescriptor}<${filterFile(filter)}` : "",
    status === null ? "" : `${statusDescriptor}>>${descriptorPath(status)}`,
    ...etcFiles.map((path, i) => `${firstDescriptor + i}<${path}`),
  ];
  const script = `${joinScript}; exec ${redirections.join(" ")} "$@"`;
  const options = [
    ...(filter ? ["--seccomp", String(filterDescriptor)] : []),
    ...(status === null ? [] : ["--json-status-fd", String(statusDescriptor)]),
  ];
  return ["/bin/sh", "-c", script, "sh", ...procsFiles, "--", ...toCommand(options)];
}

/** Starts a sandbox in the same way as the process of an agent with a model does. */
const nestedCommand = "bwrap --unshare-all --unshare-user --disable-userns --ro-bind / / --proc /proc true".split(" ");

/**
 * Finds out whether this machine allows such a sandbox. Runs this executable in it or, for agents with a model, another sandbox. Resolves to null, or
 * to the reason why it isn't allowed.
 */
export async function testAgentSandbox(kind: "rules" | "model", env: Env): Promise<string | null> {
  const { PATH = "/usr/sbin:/usr/bin:/sbin:/bin" } = env;
  const access = { sockets: [], folders: [] };
  const command =
    kind === "model"
      ? toSandboxCommand(nestedCommand, { env, nesting: { programs: noPrograms, group: null }, access })
      : toSandboxCommand([...ownProgram().argv, "--version"], { env, nesting: null, access });
  if (command === null) return describeSandboxProblem({ code: "not_installed", line: "" });
  const child = Bun.spawn(command, { cwd: "/", env: { PATH }, stdio: ["ignore", "ignore", "pipe"] });
  const [code, output] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  return code === 0 ? null : describeSandboxProblem(findSandboxProblem(output || `it exited with code ${code}`));
}

let filterPath: string | null = null;

/** The path of a file that contains the filter. No folder lists the file, so it exists only as long as this process. */
function filterFile(filter: Uint8Array): string {
  if (filterPath !== null) return filterPath;
  const path = join(tmpdir(), `evald-${crypto.randomUUID()}`);
  const file = openSync(path, "wx", 0o600);
  unlinkSync(path);
  writeSync(file, filter);
  filterPath = descriptorPath(file);
  return filterPath;
}

/** The path by which other processes of the same user open a file of this one. */
const descriptorPath = (file: number) => `/proc/${process.pid}/fd/${file}`;
