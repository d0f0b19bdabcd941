import { reasonOf } from "../errors.ts";
import {
  checkAgents,
  checkBrowser,
  checkCpu,
  checkPageSandbox,
  checkPrograms,
  checkSandbox,
  checkWorkspaces,
} from "./agents.ts";
import {
  checkBaseUrl,
  checkGateway,
  checkModels,
  checkOidc,
  checkOtlp,
  checkProxies,
  checkWorkers,
} from "./connections.ts";
import { checkDataDirectory, checkDisk } from "./data.ts";
import {
  type Check,
  type CheckInput,
  type CheckOccasion,
  checkOccasions,
  type Finding,
  type Installation,
  problemFound,
} from "./finding.ts";
import { checkAuthorities, checkOpenFiles, checkPort } from "./machine.ts";
import { checkMail } from "./mail.ts";
import { checkRedis } from "./redis.ts";
import { checkBackup, checkClock, checkSecretKey, checkTimeZones } from "./stored.ts";

const always = checkOccasions;
const doctorOnly = ["doctor"] as const;
/** For checks that start slow programs: the service doesn't need their results right after its start. */
const doctorAndDaily = ["doctor", "daily"] as const;
const serviceOnly = ["start", "daily"] as const;
const slowTimeoutMs = 60_000;

/** Every check, in the order of `evald doctor`, with what it looks at and when it runs. No check changes anything. */
export const checks = [
  {
    id: "data_directory",
    looksAt: "Write access to the data directory and the database, and access of other users",
    occasions: always,
    run: checkDataDirectory,
  },
  { id: "disk", looksAt: "Free space, and its trend of the last week", occasions: always, run: checkDisk },
  {
    id: "secret_key",
    looksAt: "Whether `EVALD_SECRET_KEY` decrypts what is stored",
    occasions: always,
    run: checkSecretKey,
  },
  {
    id: "time_zones",
    looksAt: "Whether this version knows the time zones of all organizations",
    occasions: always,
    run: checkTimeZones,
  },
  { id: "backup", looksAt: "The age of the last backup", occasions: always, run: checkBackup },
  {
    id: "clock",
    looksAt: "The clock: compared with this version, stored data, other servers and the time that passed",
    occasions: always,
    run: checkClock,
    isLast: true,
  },
  { id: "open_files", looksAt: "The limit for open files", occasions: always, run: checkOpenFiles },
  {
    id: "port",
    looksAt: "Whether the service could listen, if it isn’t running",
    occasions: doctorOnly,
    run: checkPort,
  },
  {
    id: "base_url",
    looksAt: "Whether a request to `EVALD_BASE_URL` reaches this service",
    occasions: always,
    run: checkBaseUrl,
  },
  {
    id: "smtp",
    looksAt: "Connection, TLS and login of `EVALD_SMTP_URL`; sends nothing",
    occasions: always,
    run: checkMail,
  },
  { id: "oidc", looksAt: "Metadata and keys of `EVALD_OIDC_ISSUER`", occasions: always, run: checkOidc },
  {
    id: "models",
    looksAt: "Model servers and keys of the environment: lists the models, which costs nothing",
    occasions: always,
    run: checkModels,
  },
  {
    id: "otlp",
    looksAt: "Whether `EVALD_OTLP_URL` takes traces: sends an export without any",
    occasions: always,
    run: checkOtlp,
  },
  {
    id: "redis",
    looksAt: "Connection, version, access, users, persistence and memory of `EVALD_REDIS_URL`",
    occasions: always,
    run: checkRedis,
  },
  {
    id: "gateway",
    looksAt: "On a worker: whether `EVALD_GATEWAY_URL` leads to the gateway of the service",
    occasions: doctorOnly,
    run: checkGateway,
  },
  { id: "workers", looksAt: "The state of connected workers", occasions: serviceOnly, run: checkWorkers },
  {
    id: "proxies",
    looksAt: "Whether the proxies in `HTTP_PROXY` and `HTTPS_PROXY` accept connections",
    occasions: always,
    run: checkProxies,
  },
  {
    id: "authorities",
    looksAt: "The certificates in `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE`",
    occasions: always,
    run: checkAuthorities,
  },
  {
    id: "agents",
    looksAt: "Agents, and what installed coding agents lack",
    occasions: doctorOnly,
    run: checkAgents,
    timeoutMs: slowTimeoutMs,
  },
  { id: "programs", looksAt: "Programs that sessions use", occasions: doctorOnly, run: checkPrograms },
  {
    id: "sandbox",
    looksAt: "The sandbox for commands",
    occasions: always,
    run: checkSandbox,
    timeoutMs: slowTimeoutMs,
  },
  {
    id: "page_sandbox",
    looksAt: "The sandbox in which agents parse pages",
    occasions: doctorAndDaily,
    run: checkPageSandbox,
    timeoutMs: slowTimeoutMs,
  },
  {
    id: "workspace",
    looksAt: "File systems in memory for workspaces",
    occasions: doctorOnly,
    run: checkWorkspaces,
    timeoutMs: slowTimeoutMs,
  },
  { id: "cpu", looksAt: "Control groups for sessions", occasions: doctorOnly, run: checkCpu },
  {
    id: "browser",
    looksAt: "Whether Chromium starts in a sandbox",
    occasions: doctorAndDaily,
    run: checkBrowser,
    timeoutMs: slowTimeoutMs,
  },
] as const satisfies Check[];

export type CheckId = (typeof checks)[number]["id"] | "database" | "service";

export const checkIds: readonly CheckId[] = [...checks.map(({ id }) => id), "database", "service"];

/** A finding with the check that made it. */
export type CheckResult = Finding & { check: CheckId };

const defaultTimeoutMs = 10_000;
/** How long a check has after its time limit to report by itself what didn't answer. */
const graceMs = 500;

/** Runs the checks of an occasion at the same time. Returns their findings in the order of `checks`. `only`: whether to run a check; default: all. */
export async function runChecks(
  occasion: CheckOccasion,
  installation: Installation,
  only: (id: CheckId) => boolean = () => true,
): Promise<CheckResult[]> {
  const selection: (Check & { id: CheckId })[] = checks.filter(
    ({ id, occasions }) => (occasions as readonly CheckOccasion[]).includes(occasion) && only(id),
  );
  const input = { ...installation, peerClocks: new Map<string, number>() };
  const findings = new Map<string, Finding[]>();
  const runAtOnce = (some: typeof selection) =>
    Promise.all(some.map(async (check) => findings.set(check.id, await runCheck(check, input))));
  // The clock check reads `peerClocks`, which the connection checks fill. So it runs after them.
  await runAtOnce(selection.filter(({ isLast }) => !isLast));
  await runAtOnce(selection.filter(({ isLast }) => isLast));
  return selection.flatMap(({ id }) => (findings.get(id) ?? []).map((finding) => ({ check: id, ...finding })));
}

/** Runs a check within its time limit. Never throws: a check that fails becomes the finding `check_failed`. */
async function runCheck(
  { run, timeoutMs = defaultTimeoutMs }: Check,
  input: Omit<CheckInput, "signal">,
): Promise<Finding[]> {
  const timeLimit = new AbortController();
  const timeout = Promise.withResolvers<Finding[]>();
  const timers = [
    setTimeout(() => timeLimit.abort(), timeoutMs),
    setTimeout(timeout.resolve, timeoutMs + graceMs, [
      problemFound("check_failed", `it took more than ${timeoutMs / 1000} seconds`),
    ]),
  ];
  try {
    const findings = async () => [await run({ ...input, signal: timeLimit.signal })].flat();
    return await Promise.race([findings(), timeout.promise]);
  } catch (error) {
    return [problemFound("check_failed", reasonOf(error))];
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}
