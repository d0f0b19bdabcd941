import { accessSync, constants, existsSync, readFileSync, realpathSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { max } from "drizzle-orm";
import type { Agent } from "../agents/agent.ts";
import { inProcessAgents, listPresets } from "../agents/all.ts";
import { objectionToAgent } from "../agents/choice.ts";
import type { Preset } from "../agents/coding/preset.ts";
import { findInstalled, findProgram, findVersion, type InstalledAgent } from "../agents/coding/program.ts";
import { testAgentSandbox } from "../agents/sandbox/agent-command.ts";
import { isVisibleInSandboxes } from "../agents/sandbox/bubblewrap.ts";
import { detectBrowser } from "../agents/sandbox/chromium.ts";
import { canGroupSessions } from "../agents/sandbox/cpu-groups.ts";
import { toInstall } from "../agents/sandbox/problems.ts";
import { detectSandbox, type Sandbox } from "../agents/sandbox/sandbox.ts";
import { testWorkspace } from "../agents/sandbox/workspace.ts";
import type { Config } from "../config/config.ts";
import { providerVariables } from "../config/model-settings.ts";
import { describeRedisAccess } from "../config/worker-settings.ts";
import { runs } from "../db/tables/runs.ts";
import { findSecretKeyProblem } from "../notifications/secrets.ts";
import type { RedisState } from "../places/control.ts";
import { toIso } from "../schema.ts";
import { withData } from "./data-directory.ts";
import { print, table, toJson, toMessage, toSize } from "./terminal.ts";

type Check = { what: string; state: "ok" | "missing" | "fault"; detail: string };

const minFreeBytes = 512 * 1024 * 1024;
const modelKeys = [...Object.values(providerVariables).map(({ key }) => key), "OPENAI_COMPATIBLE_BASE_URL"];

/** Adds `doctor`: checks this machine. Exits with 1 on a fault; something that is only missing is no fault. */
export function addDoctor(program: Command, configOf: () => Config, env: Record<string, string | undefined>): void {
  program
    .command("doctor")
    .description("Check this machine's setup; exit with 1 if something is broken")
    .option("--json", "Print the results as JSON")
    .addHelpText("after", "\nExample:\n  evald doctor")
    .action(async ({ json }: { json?: boolean }) => {
      const config = configOf();
      const sandbox = await detectSandbox();
      const presets = listPresets(env);
      const codingAgents = presets.map((preset) => findInstalled(preset, env.PATH ?? ""));
      const checks = [
        checkDataFolder(config.dataDir),
        checkDisk(config.dataDir),
        ...checkDatabase(config),
        {
          what: "agents",
          state: "ok",
          detail: Object.entries(inProcessAgents(env))
            .filter(([id]) => !codingAgents.some((each) => each.id === id))
            .map((each) => describeAgent(each, config.agentModel))
            .join(", "),
        },
        ...codingAgents.map(checkCodingAgent),
        ...presets.flatMap((preset) => checkRequirements(preset, env.PATH ?? "")),
        checkPrograms(),
        checkSandbox(sandbox),
        checkPageSandbox(sandbox, await testAgentSandbox("rules", env), await testAgentSandbox("model", env)),
        ...(sandbox.level === "none" ? [] : [checkWorkspace(await testWorkspace(config.workspaceBytes))]),
        checkCpu(),
        await checkBrowser(sandbox),
        checkModelKeys(env),
        ...(config.workers.redisUrl === null ? [] : await checkRedis(config.workers.redisUrl)),
      ] satisfies Check[];
      print(json ? toJson(checks) : table(checks.map(({ what, state, detail }) => [state, what, detail])));
      if (checks.some(({ state }) => state === "fault")) process.exitCode = 1;
    });
}

function describeAgent([id, agent]: [string, Agent], model: string | null): string {
  const objection = objectionToAgent(agent);
  const modelNote =
    agent.describe().kind === "model"
      ? ` (${model ?? "no model; set EVALD_AGENT_MODEL or choose one per prompt"})`
      : "";
  return objection === null ? id + modelNote : `${id} (unavailable: ${objection})`;
}

function checkCodingAgent(agent: InstalledAgent): Check {
  const what = `agent ${agent.id}`;
  if (!agent.isHere) return { what, state: "missing", detail: agent.detail };
  const { version, isTried, path } = agent;
  return {
    what,
    state: "ok",
    detail: `${version}${isTried ? "" : ", not tested with this version of evald"}, ${path}`,
  };
}

/** The folders in which programs in a sandbox find others. */
const sandboxPath = "/usr/local/bin:/usr/bin:/bin";

/** What agents run without bringing it along, by agent. */
const helpers: Record<string, { command: string; use: string; name: string }> = {
  opencode: { command: "rg", use: "load skills", name: "ripgrep" },
};

/** What an installed agent lacks on this machine, so that some of its sessions would fail. */
function checkRequirements(preset: Preset, path: string): Check[] {
  const program = findProgram(preset, path);
  if ("missing" in program) return [];
  const toCheck = (detail: string): Check => ({ what: `agent ${preset.id}`, state: "missing", detail });
  const checks: Check[] = [];
  const helper = helpers[preset.id];
  if (helper && Bun.which(helper.command, { PATH: sandboxPath }) === null)
    checks.push(
      toCheck(
        `cannot ${helper.use}: ${helper.command} is not in ${sandboxPath}; for all users, ${toInstall(helper.name)}`,
      ),
    );
  const node = program.argv.some((argument) => basename(argument) === "node")
    ? Bun.which("node", { PATH: path })
    : null;
  const range = node === null ? null : findNodeRange(program.path);
  const version = node === null ? null : findVersion(node, path);
  if (range !== null && version !== null && !Bun.semver.satisfies(version, range))
    checks.push(toCheck(`needs Node.js ${range}, but node on PATH is ${version}; install that version of Node.js`));
  return checks;
}

/** The versions of Node.js that the package of a program asks for (`engines`); null if it asks for none. */
function findNodeRange(program: string): string | null {
  for (let folder = dirname(realpathSync(program)); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (!existsSync(manifest)) continue;
    try {
      const { name, engines } = JSON.parse(readFileSync(manifest, "utf8"));
      if (typeof name === "string") return typeof engines?.node === "string" ? engines.node : null;
    } catch {
      return null;
    }
  }
  return null;
}

/** Programs that sandboxes run for sessions, and what cannot be done without them. */
const programs = {
  git: "check out a repository of a workspace",
  tar: "unpack an archive of a workspace",
  diff: "show how an agent changed its workspace",
  curl: "send requests from commands",
};

function checkPrograms(): Check {
  const what = "programs";
  const missing = Object.entries(programs).filter(([name]) => Bun.which(name, { PATH: sandboxPath }) === null);
  if (missing.length === 0) return { what, state: "ok", detail: Object.keys(programs).join(", ") };
  const list = missing.map(([name, use]) => `${name} (to ${use})`).join(", ");
  return { what, state: "missing", detail: `not in ${sandboxPath}: ${list}; install them for all users` };
}

const checkCpu = (): Check =>
  canGroupSessions()
    ? { what: "cpu", state: "ok", detail: "shared between the service and its sessions by control groups" }
    : {
        what: "cpu",
        state: "missing",
        detail:
          "sessions have a lower priority instead of a control group each, so the service may respond more slowly; run evald as root, or with Delegate=yes and DelegateSubgroup= in its systemd unit",
      };

/** The directory itself, or its nearest existing parent. */
const nearestExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));

function checkDataFolder(dataDir: string): Check {
  const path = resolve(dataDir);
  try {
    accessSync(nearestExisting(path), constants.W_OK);
  } catch {
    return { what: "data directory", state: "fault", detail: `no write access to ${path}` };
  }
  if (isVisibleInSandboxes(path))
    return {
      what: "data directory",
      state: "fault",
      detail: `sandboxes show ${path}; use a directory outside of /usr`,
    };
  if (!statSync(nearestExisting(path)).isDirectory())
    return { what: "data directory", state: "fault", detail: `${nearestExisting(path)} is not a directory` };
  if (existsSync(path)) return { what: "data directory", state: "ok", detail: path };
  return { what: "data directory", state: "missing", detail: `${path} does not exist yet; evald serve creates it` };
}

function checkDisk(dataDir: string): Check {
  const { bavail, bsize } = statfsSync(nearestExisting(resolve(dataDir)));
  const free = bavail * bsize;
  const detail = `${toSize(free)} free`;
  if (free >= minFreeBytes) return { what: "disk", state: "ok", detail };
  return { what: "disk", state: "fault", detail: `${detail}; at least 0.5 GiB is needed` };
}

function databaseSize(dataDir: string): string {
  const [file, wal] = ["evald.db", "evald.db-wal"].map((name) =>
    toSize(statSync(resolve(dataDir, name), { throwIfNoEntry: false })?.size ?? 0),
  );
  return `${file} and a WAL of ${wal}`;
}

function checkDatabase(config: Config): Check[] {
  const clock = toIso(Date.now());
  if (!existsSync(resolve(config.dataDir, "evald.db"))) return [{ what: "clock", state: "ok", detail: clock }];
  try {
    return withData(config, ({ ctx }) => {
      const check = ctx.db.$client.query<{ quick_check: string }, []>("pragma quick_check").get()?.quick_check;
      const newest =
        ctx.db
          .select({ at: max(runs.createdAt) })
          .from(runs)
          .get()?.at ?? 0;
      const secretKeyProblem = findSecretKeyProblem(ctx);
      const isBehind = newest > Date.now() + 60_000;
      return [
        {
          what: "database",
          state: check === "ok" ? "ok" : "fault",
          detail: check === "ok" ? `intact, ${databaseSize(config.dataDir)}` : `damaged: ${check}; restore a backup`,
        },
        ...(secretKeyProblem === null
          ? []
          : [{ what: "stored secrets", state: "fault" as const, detail: secretKeyProblem }]),
        {
          what: "clock",
          state: isBehind ? "fault" : "ok",
          detail: isBehind ? `${clock} is before the newest run; correct the system clock` : clock,
        },
      ];
    });
  } catch (error) {
    return [{ what: "database", state: "fault", detail: error instanceof Error ? error.message : String(error) }];
  }
}

function checkPageSandbox(sandbox: Sandbox, rulesProblem: string | null, modelProblem: string | null): Check {
  const what = "page sandbox";
  if (sandbox.level === "none" && rulesProblem === sandbox.detail && modelProblem === sandbox.detail)
    return { what, state: "missing", detail: "agents parse pages without a sandbox, for the same reason" };
  const missing = [
    ...(rulesProblem === null ? [] : [`the explorer parses pages without a sandbox: ${rulesProblem}`]),
    ...(modelProblem === null ? [] : [`agents with a model parse pages without a sandbox: ${modelProblem}`]),
  ];
  if (missing.length === 0) return { what, state: "ok", detail: "agents parse pages in a sandbox" };
  return { what, state: "missing", detail: missing.join("; ") };
}

function checkSandbox({ level, detail }: Sandbox): Check {
  if (level === "none") return { what: "sandbox", state: "missing", detail: `agents cannot run commands: ${detail}` };
  return { what: "sandbox", state: "ok", detail };
}

const checkWorkspace = (problem: string | null): Check =>
  problem === null
    ? { what: "workspace", state: "ok", detail: "a file system in memory, of limited size" }
    : { what: "workspace", state: "missing", detail: `on disk, where its size is watched: ${problem}` };

async function checkBrowser(sandbox: Sandbox): Promise<Check> {
  const browser = await detectBrowser(sandbox);
  if ("missing" in browser)
    return { what: "browser", state: "missing", detail: `agents cannot use a browser: ${browser.missing}` };
  return { what: "browser", state: "ok", detail: browser.detail };
}

function checkModelKeys(env: Record<string, string | undefined>): Check {
  const presentKeys = modelKeys.filter((name) => env[name]);
  if (presentKeys.length > 0) return { what: "model keys", state: "ok", detail: presentKeys.join(", ") };
  return { what: "model keys", state: "missing", detail: "none set; the explorer works without one" };
}

/** The oldest version with everything that evald and BullMQ use. */
const minRedis = [6, 2] as const;

/** Loaded only here: the other checks need no Redis. */
async function checkRedis(url: string): Promise<Check[]> {
  const { isReadableByAnyone: isOpen, readRedisState, withRedis } = await import("../places/control.ts");
  try {
    const redis = await withRedis(url, readRedisState);
    return [
      checkRedisVersion(redis),
      checkRedisAccess(url, await isOpen(url)),
      checkRedisUsers(redis),
      checkRedisPersistence(redis),
      checkRedisMemory(redis),
    ];
  } catch (error) {
    return [{ what: "redis", state: "fault", detail: toMessage(error) }];
  }
}

function checkRedisVersion({ version, ms }: RedisState): Check {
  const what = "redis";
  const detail = `${version}, answers in ${ms === 0 ? "less than 1" : ms} ms`;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < minRedis[0] || (major === minRedis[0] && minor < minRedis[1]);
  return isOld
    ? { what, state: "fault", detail: `${detail}; at least ${minRedis.join(".")} is needed` }
    : { what, state: "ok", detail };
}

function checkRedisAccess(url: string, isOpen: boolean): Check {
  const what = "redis access";
  const { isLocal, hasTls, hasPassword } = describeRedisAccess(url);
  const protection = [...(hasTls ? ["TLS"] : []), ...(hasPassword ? ["a password"] : [])].join(" and ");
  if (isOpen && (hasPassword || !isLocal))
    return {
      what,
      state: "fault",
      detail: "the server needs no password, so its clients can run agents on your workers; set requirepass",
    };
  if (protection === "") return { what, state: "ok", detail: "loopback, without a password" };
  if (hasTls || isLocal) return { what, state: "ok", detail: `${protection}${isLocal ? ", on loopback" : ""}` };
  return { what, state: "ok", detail: "a password without TLS: use it only on a private network" };
}

function checkRedisUsers({ createsUsers }: RedisState): Check {
  const what = "redis users";
  return createsUsers
    ? { what, state: "ok", detail: "each worker can have a credential of its own" }
    : {
        what,
        state: "missing",
        detail:
          "the server refuses ACL SETUSER, so credentials of evald workers add don't work; use a server that allows it, or give workers the URL of the service, with which each can read what all others do",
      };
}

/** A message that Redis loses is sent again, so a loss costs time, but no run. */
function checkRedisPersistence({ appendOnly, appendFsync }: RedisState): Check {
  const what = "redis persistence";
  const losses: Record<string, string> = {
    always: "a power failure loses no message",
    everysec: "a power failure loses the messages of the last second",
    no: "a power failure loses the messages of about 30 seconds",
  };
  if (appendOnly === "unknown")
    return { what, state: "missing", detail: "unknown: the server forbids CONFIG GET; set appendonly yes" };
  if (appendOnly !== "yes")
    return {
      what,
      state: "missing",
      detail: "appendonly no: a restart loses all messages, which are sent again; set appendonly yes",
    };
  return { what, state: "ok", detail: `appendfsync ${appendFsync}: ${losses[appendFsync] ?? "unknown loss"}` };
}

function checkRedisMemory({ maxMemoryPolicy }: RedisState): Check {
  const what = "redis memory";
  if (maxMemoryPolicy === "noeviction") return { what, state: "ok", detail: "maxmemory-policy noeviction" };
  if (maxMemoryPolicy === "unknown")
    return {
      what,
      state: "missing",
      detail: "unknown: the server forbids CONFIG GET; set maxmemory-policy noeviction",
    };
  return {
    what,
    state: "fault",
    detail: `maxmemory-policy ${maxMemoryPolicy} deletes orders when memory is full; set maxmemory-policy noeviction`,
  };
}
