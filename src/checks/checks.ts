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
  type CheckPlace,
  checkPlaces,
  type Finding,
  found,
  type Installation,
  type Surroundings,
} from "./finding.ts";
import { checkAuthorities, checkOpenFiles, checkPort } from "./machine.ts";
import { checkMail } from "./mail.ts";
import { checkRedis } from "./redis.ts";
import { checkBackup, checkClock, checkSecretKey, checkTimeZones } from "./stored.ts";

const everywhere = checkPlaces;
const doctorOnly = ["doctor"] as const;
/** The service needs no early answer from programs that take long to start. */
const doctorAndDaily = ["doctor", "daily"] as const;
const serviceOnly = ["start", "daily"] as const;
const slowMs = 60_000;

/** Every check, in the order of `evald doctor`, with what it looks at and who runs it. None changes anything. */
export const checks = [
  {
    id: "data_directory",
    looksAt: "Write access to the data directory and the database, and access of other users",
    places: everywhere,
    run: checkDataDirectory,
  },
  { id: "disk", looksAt: "Free space, and its trend of the last week", places: everywhere, run: checkDisk },
  {
    id: "secret_key",
    looksAt: "Whether `EVALD_SECRET_KEY` decrypts what is stored",
    places: everywhere,
    run: checkSecretKey,
  },
  {
    id: "time_zones",
    looksAt: "Whether this version knows the time zones of all organizations",
    places: everywhere,
    run: checkTimeZones,
  },
  { id: "backup", looksAt: "The age of the last backup", places: everywhere, run: checkBackup },
  {
    id: "clock",
    looksAt: "The clock: compared with this version, stored data, other servers and the time that passed",
    places: everywhere,
    run: checkClock,
    isLast: true,
  },
  { id: "open_files", looksAt: "The limit for open files", places: everywhere, run: checkOpenFiles },
  { id: "port", looksAt: "Whether the service could listen, if it isn’t running", places: doctorOnly, run: checkPort },
  {
    id: "base_url",
    looksAt: "Whether `EVALD_BASE_URL` leads to this service, which it asks through that URL",
    places: everywhere,
    run: checkBaseUrl,
  },
  {
    id: "smtp",
    looksAt: "Connection, TLS and login of `EVALD_SMTP_URL`; sends nothing",
    places: everywhere,
    run: checkMail,
  },
  {
    id: "oidc",
    looksAt: "Metadata and keys of `EVALD_OIDC_ISSUER`",
    places: everywhere,
    run: checkOidc,
  },
  {
    id: "models",
    looksAt: "Model servers and keys of the environment: lists the models, which costs nothing",
    places: everywhere,
    run: checkModels,
  },
  {
    id: "otlp",
    looksAt: "Whether `EVALD_OTLP_URL` takes traces: sends an export without any",
    places: everywhere,
    run: checkOtlp,
  },
  {
    id: "redis",
    looksAt: "Connection, version, access, users, persistence and memory of `EVALD_REDIS_URL`",
    places: everywhere,
    run: checkRedis,
  },
  {
    id: "gateway",
    looksAt: "On a worker: whether `EVALD_GATEWAY_URL` leads to the gateway of the service",
    places: doctorOnly,
    run: checkGateway,
  },
  { id: "workers", looksAt: "The state of connected workers", places: serviceOnly, run: checkWorkers },
  {
    id: "proxies",
    looksAt: "Whether the proxies in `HTTP_PROXY` and `HTTPS_PROXY` accept connections",
    places: everywhere,
    run: checkProxies,
  },
  {
    id: "authorities",
    looksAt: "The certificates in `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE`",
    places: everywhere,
    run: checkAuthorities,
  },
  {
    id: "agents",
    looksAt: "Agents, and what installed coding agents lack",
    places: doctorOnly,
    run: checkAgents,
    timeoutMs: slowMs,
  },
  { id: "programs", looksAt: "Programs that sessions use", places: doctorOnly, run: checkPrograms },
  {
    id: "sandbox",
    looksAt: "The sandbox for commands",
    places: everywhere,
    run: checkSandbox,
    timeoutMs: slowMs,
  },
  {
    id: "page_sandbox",
    looksAt: "The sandbox of agents, which parse pages",
    places: doctorAndDaily,
    run: checkPageSandbox,
    timeoutMs: slowMs,
  },
  {
    id: "workspace",
    looksAt: "File systems in memory for workspaces",
    places: doctorOnly,
    run: checkWorkspaces,
    timeoutMs: slowMs,
  },
  { id: "cpu", looksAt: "Control groups for sessions", places: doctorOnly, run: checkCpu },
  {
    id: "browser",
    looksAt: "Chromium, which it starts in a sandbox",
    places: doctorAndDaily,
    run: checkBrowser,
    timeoutMs: slowMs,
  },
] as const satisfies Check[];

export type CheckId = (typeof checks)[number]["id"] | "database" | "service";

export const checkIds: readonly CheckId[] = [...checks.map(({ id }) => id), "database", "service"];

/** A finding with the check that made it. */
export type CheckResult = Finding & { check: CheckId };

const defaultMs = 10_000;

/** Runs the checks of a place side by side, and returns their findings in the order of the table. `only`: the checks to run; default: all. */
export async function runChecks(
  place: CheckPlace,
  installation: Installation,
  only: (id: CheckId) => boolean = () => true,
): Promise<CheckResult[]> {
  const all: (Check & { id: CheckId })[] = checks.filter(
    ({ id, places }) => (places as readonly CheckPlace[]).includes(place) && only(id),
  );
  const shared = { ...installation, peerClocks: new Map<string, number>() };
  const results = new Map<string, Finding[]>();
  const runAll = (some: typeof all) =>
    Promise.all(some.map(async (check) => results.set(check.id, await runCheck(check, shared))));
  await runAll(all.filter(({ isLast }) => !isLast));
  await runAll(all.filter(({ isLast }) => isLast));
  return all.flatMap(({ id }) => (results.get(id) ?? []).map((finding) => ({ check: id, ...finding })));
}

/** Runs a check within its time. Never throws: one that fails says nothing about the others. */
async function runCheck(
  { run, timeoutMs = defaultMs }: Check,
  around: Omit<Surroundings, "signal">,
): Promise<Finding[]> {
  const ending = new AbortController();
  const timeout = Promise.withResolvers<Finding[]>();
  // What it waits for gets a moment to report that itself.
  const timers = [
    setTimeout(() => ending.abort(), timeoutMs),
    setTimeout(timeout.resolve, timeoutMs + 500, [
      found("check_failed", `it took more than ${timeoutMs / 1000} seconds`),
    ]),
  ];
  try {
    const work = (async () => [await run({ ...around, signal: ending.signal })].flat())();
    return await Promise.race([work, timeout.promise]);
  } catch (error) {
    return [found("check_failed", reasonOf(error))];
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}
