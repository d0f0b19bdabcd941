import type { Command } from "commander";
import { detectSandbox } from "../agents/sandbox/sandbox.ts";
import { adviceFor } from "../checks/advice.ts";
import { type CheckResult, runChecks } from "../checks/checks.ts";
import { examineDatabase } from "../checks/database.ts";
import { type Finding, type Installation, isProblem, notApplicable, ok, problemFound } from "../checks/finding.ts";
import { listStoredProblems } from "../checks/stored-problems.ts";
import type { Config } from "../config/config.ts";
import { lazy } from "../once.ts";
import { findRunningService, type RunningService } from "./running.ts";
import { exits, print, table, toJson } from "./terminal.ts";

const timeoutMs = 3_000;

/** Adds `doctor`, which checks this installation. Exits with 1 if a check failed. A warning isn't a failure. */
export function addDoctor(program: Command, configOf: () => Config, env: Record<string, string | undefined>): void {
  program
    .command("doctor")
    .description("Check this installation and its connections; exit with 1 if something is broken")
    .option("--json", "Print the results as JSON")
    .addHelpText("after", "\nExample:\n  evald doctor --data /var/lib/evald")
    .action(async ({ json }: { json?: boolean }) => {
      const results = await examine(configOf(), env);
      print(json ? toJson(results.map(withAdvice)) : toText(results));
      if (results.some(({ state }) => state === "failed")) process.exitCode = exits.failed;
    });
}

async function examine(config: Config, env: Installation["env"]): Promise<CheckResult[]> {
  const now = Date.now;
  const running = findRunningService(config.dataDir);
  const service = running && { ownUrl: running.ownUrl, instance: await askInstance(running) };
  const { finding: database, ctx, close } = examineDatabase(config, now);
  try {
    const findSandbox = lazy(detectSandbox);
    const results: CheckResult[] = [
      { check: "service", ...(await checkService(running)) },
      { check: "database", ...database },
      ...(await runChecks("doctor", { config, env, now, service, workers: null, ctx, findSandbox })),
    ];
    // The service may have settings that this command doesn't have.
    const problemsOfService = running && ctx ? listStoredProblems(ctx) : [];
    const isNew = ({ check, cause }: CheckResult) =>
      !results.some((each) => each.check === check && each.cause === cause);
    return [
      ...results,
      ...problemsOfService
        .filter(isNew)
        .map(({ since: _, ...result }) => ({ ...result, detail: `${result.detail} (found by the service)` })),
    ];
  } finally {
    close();
  }
}

/** Sends a request to a running service, at the address by which this machine reaches it. Throws if the service doesn't answer in time. */
const ask = async ({ url, ownUrl }: RunningService, path: string) => {
  const { pathname } = new URL(url);
  const response = await fetch(`${ownUrl}${pathname.replace(/\/$/, "")}${path}`, {
    signal: AbortSignal.timeout(timeoutMs),
    redirect: "error",
  });
  return await response.json();
};

/** The ID of the process of a running service; null if the service doesn't answer. */
async function askInstance(running: RunningService): Promise<string | null> {
  try {
    const { instance } = await ask(running, "/healthz");
    return typeof instance === "string" ? instance : null;
  } catch {
    return null;
  }
}

async function checkService(running: RunningService | null): Promise<Finding> {
  if (running === null) return notApplicable("no service runs on this data directory");
  try {
    const { status, detail } = await ask(running, "/readyz");
    if (status === "ready") return ok(`ready at ${running.ownUrl}`, running.ownUrl);
    return problemFound("service_not_ready", String(detail), running.ownUrl);
  } catch {
    return problemFound(
      "service_silent",
      `${running.ownUrl} did not answer within ${timeoutMs / 1000} seconds`,
      running.ownUrl,
    );
  }
}

const noAdvice = { title: null, remedy: null, command: null };

const withAdvice = (result: CheckResult) => ({
  ...result,
  ...(result.cause === null ? noAdvice : adviceFor(result.cause, result.subject)),
});

const stateNames = { ok: "ok", warning: "warning", failed: "failed", not_applicable: "-" };

/** All results as a table, followed by what to do about the problems. */
function toText(results: CheckResult[]): string {
  // The results of one check follow each other. Only their subjects tell them apart.
  const repetitions = results.filter(({ check }, i) => results[i - 1]?.check === check);
  const nameOf = ({ check, subject }: CheckResult) =>
    subject !== null && repetitions.some((each) => each.check === check) ? `${check} ${subject}` : check;
  const advice = results.filter(isProblem).map((result) => {
    const { title, remedy, command } = withAdvice(result);
    return [`${nameOf(result)}: ${title}.`, `  ${remedy}`, ...(command === null ? [] : [`  ${command}`])].join("\n");
  });
  const rows = results.map((result) => [stateNames[result.state], nameOf(result), result.detail]);
  return [table(rows), ...advice].join("\n\n");
}
