import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeImages } from "../../release/image.ts";
import { buildExecutable, executable } from "../support/executable.ts";

// `bun run try:packages`: makes an image and runs it with Podman and crun, which takes minutes. It needs root, mmdebstrap, podman and crun.
const isTried = process.env.PACKAGES === "all";
const folder = mkdtempSync(join(tmpdir(), "evald-image-test-"));
const seccomp = join(import.meta.dir, "..", "..", "release", "image", "seccomp.json");
const store = ["--root", `${folder}/storage`, "--runroot", `${folder}/run`, "--storage-driver", "vfs"];
const podman = ["podman", ...store, "--cgroup-manager=cgroupfs"];
/** As Podman and Docker name it. */
const image = "docker.io/library/evald:trial";
const data = ["--volume", "data:/var/lib/evald"];

/** As a container engine is often started: with its default profile and limits. */
const plain = [
  "run",
  "--cgroups=disabled",
  "--network",
  "host",
  "--runtime",
  "crun",
  "--no-healthcheck",
  "--read-only",
];
/** With what the documentation says that the sandbox needs, in Podman's words. */
const withSandbox = [
  "--cap-drop=ALL",
  "--security-opt",
  "no-new-privileges",
  "--security-opt",
  `seccomp=${seccomp}`,
  "--security-opt",
  "unmask=ALL",
  "--ulimit",
  "nofile=8192:8192",
];
const withOldLimit = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"];
const limits = ["--ulimit", "nproc=4096:4096"];

// crun refuses machines that mount the second version of control groups beside the first.
const script = `for m in $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts); do umount -l $m; done; exec "$@"`;
const toCommand = (args: string[]) => ["unshare", "--mount", "sh", "-c", script, "sh", ...podman, ...args];

function run(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(toCommand(args), { cwd: folder });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

type Check = { check: string; state: string; detail: string };

function diagnose(...options: string[]): Record<string, Check> {
  const { stdout, stderr } = run(...plain, "--rm", ...limits, ...data, ...options, image, "doctor", "--json");
  try {
    return Object.fromEntries((JSON.parse(stdout) as Check[]).map((each) => [each.check, each]));
  } catch {
    throw new Error(stdout + stderr);
  }
}

beforeAll(async () => {
  if (!isTried) return;
  await buildExecutable();
  const parts = {
    executable: readFileSync(executable),
    notices: [],
    seconds: 1_790_000_000,
    commit: null,
    tag: "trial",
  };
  const files = writeImages(parts, folder, [""]);
  const loaded = run("load", "--input", join(folder, files.trial ?? ""));
  if (loaded.code !== 0) throw new Error(loaded.stderr);
}, 1_200_000);

afterAll(() => {
  if (isTried) run("rm", "--all", "--force");
  rmSync(folder, { recursive: true, force: true });
});

test.skipIf(!isTried)(
  "without options, the doctor names the one for each cause, one after the other",
  () => {
    expect(diagnose(...withOldLimit).sandbox).toMatchObject({
      state: "warning",
      detail: expect.stringContaining("seccomp=seccomp.json"),
    });
    const filtered = ["--security-opt", `seccomp=${seccomp}`];
    expect(diagnose(...withOldLimit, ...filtered).sandbox?.detail).toContain("unmask=ALL");
    expect(diagnose(...withOldLimit, ...filtered, "--security-opt", "unmask=ALL").sandbox?.detail).toContain(
      "--ulimit nofile",
    );
  },
  120_000,
);

test.skipIf(!isTried)(
  "with the documented options, agents have a sandbox, and the service writes to its volume alone",
  async () => {
    const checks = diagnose(...withSandbox);
    expect(checks.sandbox).toMatchObject({ state: "ok" });
    expect(checks.page_sandbox).toMatchObject({ state: "ok" });
    expect(checks.data_directory).toMatchObject({ state: "ok" });

    const service = Bun.spawn(
      toCommand([...plain, ...limits, ...data, ...withSandbox, "--name", "evald", "--env", "EVALD_PORT=0", image]),
      { stdout: "ignore", stderr: "pipe" },
    );
    for await (const bytes of service.stderr) if (Buffer.from(bytes).includes("listening on")) break;
    expect(run("exec", "evald", "/usr/bin/evald", "health")).toMatchObject({ code: 0, stdout: "ready\n" });
    expect(run("exec", "evald", "id", "--user").stdout).toBe("10001\n");
    expect(run("exec", "evald", "touch", "/usr/x").code).not.toBe(0);
    expect(run("stop", "--time", "20", "evald").code).toBe(0);
    await service.exited;
    expect(run("inspect", "--format", "{{.State.ExitCode}}", "evald").stdout).toBe("0\n");
  },
  120_000,
);
