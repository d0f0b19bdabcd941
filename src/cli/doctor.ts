import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { max } from "drizzle-orm";
import type { Agent } from "../agents/agent.ts";
import { allAgents, listPresets } from "../agents/all.ts";
import { objectionTo } from "../agents/choice.ts";
import { type InstalledAgent, lookUp } from "../agents/coding/installed.ts";
import { detectBrowser } from "../agents/sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../agents/sandbox/sandbox.ts";
import type { Config } from "../config/config.ts";
import { providerVariables } from "../config/model-settings.ts";
import { runs } from "../db/tables.ts";
import { toIso } from "../schema.ts";
import { print, table, toSize, withData } from "./terminal.ts";

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
      const found = await detectSandbox();
      const codingAgents = listPresets(env).map((preset) => lookUp(preset, env.PATH ?? ""));
      const findings = [
        folder(config.dataDir),
        disk(config.dataDir),
        ...data(config),
        {
          what: "agents",
          state: "ok",
          detail: Object.entries(allAgents(env))
            .filter(([id]) => !codingAgents.some((each) => each.id === id))
            .map((each) => toAgent(each, config.agentModel))
            .join(", "),
        },
        ...codingAgents.map(codingAgent),
        sandbox(found),
        await browser(found),
        modelKey(env),
      ] satisfies Check[];
      print(json ? JSON.stringify(findings) : table(findings.map(({ what, state, detail }) => [state, what, detail])));
      if (findings.some(({ state }) => state === "fault")) process.exitCode = 1;
    });
}

function toAgent([id, agent]: [string, Agent], model: string | null): string {
  const objection = objectionTo(agent);
  const needs =
    agent.describe().kind === "model"
      ? ` (${model ?? "no model; set EVALD_AGENT_MODEL or choose one per prompt"})`
      : "";
  return objection === null ? id + needs : `${id} (unavailable: ${objection})`;
}

function codingAgent(agent: InstalledAgent): Check {
  const what = `agent ${agent.id}`;
  if (!agent.isHere) return { what, state: "missing", detail: agent.detail };
  const { version, isTried, path } = agent;
  return {
    what,
    state: "ok",
    detail: `${version}${isTried ? "" : ", not tested with this version of evald"}, ${path}`,
  };
}

/** The directory itself, or its nearest existing parent. */
const nearest = (path: string): string => (existsSync(path) || dirname(path) === path ? path : nearest(dirname(path)));

function folder(dataDir: string): Check {
  const path = resolve(dataDir);
  try {
    accessSync(nearest(path), constants.W_OK);
  } catch {
    return { what: "data directory", state: "fault", detail: `no write access to ${path}` };
  }
  if (existsSync(path)) return { what: "data directory", state: "ok", detail: path };
  return { what: "data directory", state: "missing", detail: `${path} does not exist yet; evald serve creates it` };
}

function disk(dataDir: string): Check {
  const { bavail, bsize } = statfsSync(nearest(resolve(dataDir)));
  const free = bavail * bsize;
  const detail = `${toSize(free)} free`;
  if (free >= minFreeBytes) return { what: "disk", state: "ok", detail };
  return { what: "disk", state: "fault", detail: `${detail}; at least 0.5 GiB is needed` };
}

function sizes(dataDir: string): string {
  const [file, wal] = ["evald.db", "evald.db-wal"].map((name) =>
    toSize(statSync(resolve(dataDir, name), { throwIfNoEntry: false })?.size ?? 0),
  );
  return `${file} and a WAL of ${wal}`;
}

function data(config: Config): Check[] {
  const clock = toIso(Date.now());
  if (!existsSync(resolve(config.dataDir, "evald.db"))) return [{ what: "clock", state: "ok", detail: clock }];
  try {
    return withData(config, ({ deps }) => {
      const check = deps.db.$client.query<{ quick_check: string }, []>("pragma quick_check").get()?.quick_check;
      const newest =
        deps.db
          .select({ at: max(runs.createdAt) })
          .from(runs)
          .get()?.at ?? 0;
      const behind = newest > Date.now() + 60_000;
      return [
        {
          what: "database",
          state: check === "ok" ? "ok" : "fault",
          detail: check === "ok" ? `intact, ${sizes(config.dataDir)}` : `damaged: ${check}; restore a backup`,
        },
        {
          what: "clock",
          state: behind ? "fault" : "ok",
          detail: behind ? `${clock} is before the newest run; correct the system clock` : clock,
        },
      ];
    });
  } catch (error) {
    return [{ what: "database", state: "fault", detail: error instanceof Error ? error.message : String(error) }];
  }
}

function sandbox({ level, detail }: Sandbox): Check {
  if (level === "none") return { what: "sandbox", state: "missing", detail: `agents cannot run commands: ${detail}` };
  return { what: "sandbox", state: "ok", detail };
}

async function browser(place: Sandbox): Promise<Check> {
  const found = await detectBrowser(place);
  if ("missing" in found)
    return { what: "browser", state: "missing", detail: `agents cannot use a browser: ${found.missing}` };
  return { what: "browser", state: "ok", detail: found.detail };
}

function modelKey(env: Record<string, string | undefined>): Check {
  const set = modelKeys.filter((name) => env[name]);
  if (set.length > 0) return { what: "model keys", state: "ok", detail: set.join(", ") };
  return { what: "model keys", state: "missing", detail: "none set; the explorer works without one" };
}
