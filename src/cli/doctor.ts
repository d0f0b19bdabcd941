import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { max } from "drizzle-orm";
import { type Agent, objectionTo } from "../agents/agent.ts";
import { allAgents } from "../agents/all.ts";
import { detectBrowser } from "../agents/sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../agents/sandbox/sandbox.ts";
import type { Config } from "../config.ts";
import { runs } from "../db/tables.ts";
import { providerVariables } from "../modelsettings.ts";
import { print, table, toSize, withData } from "./terminal.ts";

type Finding = { what: string; state: "ok" | "missing" | "fault"; detail: string };

const minFreeBytes = 512 * 1024 * 1024;
const modelKeys = [...Object.values(providerVariables).map(({ key }) => key), "OPENAI_COMPATIBLE_BASE_URL"];

/** Adds `doctor`: what this machine has, and what is wrong with it. Exits with 1 on a fault; what is only missing is none. */
export function addDoctor(program: Command, configOf: () => Config, env: Record<string, string | undefined>): void {
  program
    .command("doctor")
    .description("tell what this machine has and what is wrong; exit 1 on a fault")
    .option("--json", "print the findings as JSON")
    .addHelpText("after", "\nExample:\n  evald doctor")
    .action(async ({ json }: { json?: boolean }) => {
      const config = configOf();
      const found = await detectSandbox();
      const findings = [
        folder(config.dataDir),
        disk(config.dataDir),
        ...data(config),
        {
          what: "agents",
          state: "ok",
          detail: Object.entries(allAgents())
            .map((each) => toAgent(each, config.agentModel))
            .join(", "),
        },
        sandbox(found),
        await browser(found),
        modelKey(env),
      ] satisfies Finding[];
      print(json ? JSON.stringify(findings) : table(findings.map(({ what, state, detail }) => [state, what, detail])));
      if (findings.some(({ state }) => state === "fault")) process.exitCode = 1;
    });
}

function toAgent([id, agent]: [string, Agent], model: string | null): string {
  const objection = objectionTo(agent);
  const needs = agent.describe().kind === "model" ? ` (${model ?? "needs EVALD_AGENT_MODEL or a prompt's model"})` : "";
  return objection === null ? id + needs : `${id} (not available: ${objection})`;
}

/** The folder itself, or the nearest one above it that exists. */
const nearest = (path: string): string => (existsSync(path) || dirname(path) === path ? path : nearest(dirname(path)));

function folder(dataDir: string): Finding {
  const path = resolve(dataDir);
  try {
    accessSync(nearest(path), constants.W_OK);
  } catch {
    return { what: "data folder", state: "fault", detail: `${path} cannot be written by this user` };
  }
  if (existsSync(path)) return { what: "data folder", state: "ok", detail: path };
  return { what: "data folder", state: "missing", detail: `${path} does not exist yet; evald serve makes it` };
}

function disk(dataDir: string): Finding {
  const { bavail, bsize } = statfsSync(nearest(resolve(dataDir)));
  const free = bavail * bsize;
  const detail = `${toSize(free)} free`;
  if (free >= minFreeBytes) return { what: "disk", state: "ok", detail };
  return { what: "disk", state: "fault", detail: `${detail}; make room: at least 0.5 GiB is needed` };
}

function sizes(dataDir: string): string {
  const [file, wal] = ["evald.db", "evald.db-wal"].map((name) =>
    toSize(statSync(resolve(dataDir, name), { throwIfNoEntry: false })?.size ?? 0),
  );
  return `${file}, and ${wal} of WAL`;
}

function data(config: Config): Finding[] {
  const clock = new Date().toISOString();
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
          detail: check === "ok" ? `whole, ${sizes(config.dataDir)}` : `damaged: ${check}; use a backup`,
        },
        {
          what: "clock",
          state: behind ? "fault" : "ok",
          detail: behind ? `${clock} is before the newest run; set the clock` : clock,
        },
      ];
    });
  } catch (error) {
    return [{ what: "database", state: "fault", detail: error instanceof Error ? error.message : String(error) }];
  }
}

function sandbox({ level, detail }: Sandbox): Finding {
  if (level === "none") return { what: "sandbox", state: "missing", detail: `no agent can run commands: ${detail}` };
  return { what: "sandbox", state: "ok", detail };
}

async function browser(place: Sandbox): Promise<Finding> {
  const found = await detectBrowser(place);
  if ("missing" in found) return { what: "browser", state: "missing", detail: `no agent can browse: ${found.missing}` };
  return { what: "browser", state: "ok", detail: found.detail };
}

function modelKey(env: Record<string, string | undefined>): Finding {
  const set = modelKeys.filter((name) => env[name]);
  if (set.length > 0) return { what: "model keys", state: "ok", detail: set.join(", ") };
  return { what: "model keys", state: "missing", detail: "none is set; the explorer needs none" };
}
