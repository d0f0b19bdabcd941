import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Agent } from "../agents/agent.ts";
import { inProcessAgents, listPresets } from "../agents/all.ts";
import { objectionToAgent } from "../agents/choice.ts";
import type { Preset } from "../agents/coding/preset.ts";
import { findInstalled, findProgram, findVersion } from "../agents/coding/program.ts";
import { testAgentSandbox } from "../agents/sandbox/agent-command.ts";
import { detectBrowser } from "../agents/sandbox/chromium.ts";
import { canGroupSessions } from "../agents/sandbox/cpu-groups.ts";
import { toInstall } from "../agents/sandbox/problems.ts";
import { testWorkspace } from "../agents/sandbox/workspace.ts";
import { type CheckInput, type Finding, notApplicable, ok, problemFound } from "./finding.ts";

/** The folders in which programs in a sandbox find others. */
const sandboxPath = "/usr/local/bin:/usr/bin:/bin";

/** Whether agents run on other machines, so that this one needs nothing for them. */
const runsElsewhere = ({ workers }: CheckInput): boolean => workers !== null;
const notOnThisMachine = () => notApplicable("agents run on workers");

/** The agents of this machine and what they lack. An agent that isn't installed is not a problem. */
export function checkAgents(input: CheckInput): Finding[] {
  if (runsElsewhere(input)) return [notOnThisMachine()];
  const { env, config } = input;
  const presets = listPresets(env);
  const ownAgents = Object.entries(inProcessAgents(env)).filter(([id]) => !presets.some((preset) => preset.id === id));
  return [
    ...ownAgents.map(([id, agent]) => describeAgent(id, agent, config.agentModel)),
    ...presets.flatMap((preset) => [
      checkCodingAgent(preset, env.PATH ?? ""),
      ...checkRequirements(preset, env.PATH ?? ""),
    ]),
  ];
}

function describeAgent(id: string, agent: Agent, model: string | null): Finding {
  const objection = objectionToAgent(agent);
  if (objection !== null) return notApplicable(`unavailable: ${objection}`, id);
  const isModel = agent.describe().kind === "model";
  return ok(isModel ? (model ?? "no model; set EVALD_AGENT_MODEL or choose one per prompt") : "ready", id);
}

function checkCodingAgent(preset: Preset, path: string): Finding {
  const agent = findInstalled(preset, path);
  if (!agent.isInstalled) return notApplicable(agent.detail, agent.id);
  return ok(
    `${agent.version}${agent.isTested ? "" : ", not tested with this version of evald"}, ${agent.path}`,
    agent.id,
  );
}

/** Programs that agents run but don't install themselves, by agent. */
const companions: Record<string, { command: string; use: string; name: string }> = {
  opencode: { command: "rg", use: "load skills", name: "ripgrep" },
};

/** What an installed agent lacks on this machine, so that some of its sessions would fail. */
function checkRequirements(preset: Preset, path: string): Finding[] {
  const program = findProgram(preset, path);
  if ("missing" in program) return [];
  const toFinding = (detail: string): Finding => problemFound("agent_incomplete", detail, preset.id);
  const findings: Finding[] = [];
  const companion = companions[preset.id];
  if (companion && Bun.which(companion.command, { PATH: sandboxPath }) === null)
    findings.push(
      toFinding(
        `cannot ${companion.use}: ${companion.command} is not in ${sandboxPath}; for all users, ${toInstall(companion.name)}`,
      ),
    );
  const runsWithNode = program.argv.some((argument) => basename(argument) === "node");
  const node = runsWithNode ? Bun.which("node", { PATH: path }) : null;
  if (node === null) return findings;
  const range = findNodeRange(program.path);
  const version = findVersion(node, path);
  if (range !== null && version !== null && !Bun.semver.satisfies(version, range))
    findings.push(toFinding(`needs Node.js ${range}, but node on PATH is ${version}; install that version of Node.js`));
  return findings;
}

/** The versions of Node.js that the package of a program asks for (`engines`); null if it asks for none. */
function findNodeRange(program: string): string | null {
  for (let folder = dirname(realpathSync(program)); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (!existsSync(manifest)) continue;
    try {
      const { name, engines } = JSON.parse(readFileSync(manifest, "utf8"));
      // A package.json without a name only says how Node.js loads the files in its folder.
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

/** Whether the programs that sessions need are installed for all users. */
export function checkPrograms(input: CheckInput): Finding {
  if (runsElsewhere(input)) return notOnThisMachine();
  const missing = Object.entries(programs).filter(([name]) => Bun.which(name, { PATH: sandboxPath }) === null);
  if (missing.length === 0) return ok(Object.keys(programs).join(", "));
  const list = missing.map(([name, use]) => `${name} (to ${use})`).join(", ");
  return problemFound("program_missing", `not in ${sandboxPath}: ${list}`);
}

/** Whether commands can run in a sandbox. */
export async function checkSandbox(input: CheckInput): Promise<Finding> {
  if (runsElsewhere(input)) return notOnThisMachine();
  const { level, detail } = await input.findSandbox();
  return level === "none" ? problemFound("sandbox_missing", detail) : ok(detail);
}

/** Whether the processes of agents, which parse pages, have a sandbox. */
export async function checkPageSandbox(input: CheckInput): Promise<Finding> {
  if (runsElsewhere(input)) return notOnThisMachine();
  const sandbox = await input.findSandbox();
  const explorerProblem = await testAgentSandbox("rules", input.env);
  const modelProblem = await testAgentSandbox("model", input.env);
  if (sandbox.level === "none" && explorerProblem === sandbox.detail && modelProblem === sandbox.detail)
    return problemFound("page_sandbox_missing", "for the same reason as commands");
  const problems = [
    ...(explorerProblem === null ? [] : [`the explorer: ${explorerProblem}`]),
    ...(modelProblem === null ? [] : [`agents with a model: ${modelProblem}`]),
  ];
  return problems.length === 0
    ? ok("agents parse pages in a sandbox")
    : problemFound("page_sandbox_missing", problems.join("; "));
}

/** Whether workspaces can be file systems in memory. */
export async function checkWorkspaces(input: CheckInput): Promise<Finding> {
  if (runsElsewhere(input)) return notOnThisMachine();
  if ((await input.findSandbox()).level === "none") return notApplicable("agents have no files without a sandbox");
  const problem = await testWorkspace(input.config.workspaceBytes);
  return problem === null ? ok("a file system in memory, of limited size") : problemFound("workspace_on_disk", problem);
}

/** Whether sessions can have control groups of their own. */
export function checkCpu(input: CheckInput): Finding {
  if (runsElsewhere(input)) return notOnThisMachine();
  return canGroupSessions()
    ? ok("shared between the service and its sessions by control groups")
    : problemFound("cpu_not_grouped", "this process may not create control groups");
}

/** Whether Chromium starts in a sandbox. */
export async function checkBrowser(input: CheckInput): Promise<Finding> {
  if (runsElsewhere(input)) return notOnThisMachine();
  const browser = await detectBrowser(await input.findSandbox());
  return "missing" in browser ? problemFound("browser_missing", browser.missing) : ok(browser.detail);
}
