// What a service does for its workers: it lets them connect, reads what they send, and notices which are gone.
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { type Fleet, listWorkers, notifyOfChange, sendState } from "./fleet.ts";
import { receiveBatch, sendOrder } from "./fleet-sessions.ts";
import { dismissWorker, forgetWorker, receiveHello, removeAbsentWorker } from "./fleet-workers.ts";
import {
  beatMs,
  FromWorker,
  messageStreamOf,
  OperatorRequest,
  operatorRequests,
  serviceClaim,
  sharedCredential,
  workerList,
} from "./messages.ts";
import { putValue, readMessages, removeKeys } from "./redis.ts";
import { applyCredentials, defineScripts, isUserRefused, loadScripts, type WorkerCredential } from "./redis-users.ts";
import { claimRedis } from "./service-claim.ts";

/** An order is sent again if its worker hasn't confirmed it within this time. */
const confirmMs = 5_000;
/** For each credential, malformed messages are reported once in this time. */
const reportMs = 60_000;

const checks = {
  message: TypeCompiler.Compile(FromWorker),
  request: TypeCompiler.Compile(OperatorRequest),
};

/**
 * Access of workers to Redis. `credentials` lists the credentials of the service. `applied`: by user, the digests of the credentials that Redis has.
 * `problem`: the last error in granting access, kept so that it is logged only once; empty: none.
 */
type WorkerAccess = { credentials: () => WorkerCredential[]; applied: Map<string, string>; problem: string };

/** Waits until no other service uses the Redis server. Then reads what workers and operators send, until the connections are closed. */
export async function serveWorkers(fleet: Fleet, owner: string, access: WorkerAccess): Promise<void> {
  const { redis } = fleet;
  await defineScripts(redis);
  while (!(await claimRedis(fleet, owner, "start"))) {
    if (redis.isClosed) return;
    await Bun.sleep(beatMs);
  }
  // Everything that the previous process and its workers left is void, and some of those workers are gone.
  await removeKeys(redis, "evald:", serviceClaim);
  await grantAccess(fleet, access);
  await readFromWorkers(fleet, access.credentials);
}

/** Reads what workers and operators send, until the connections are closed. The stream of a message shows the credential of its worker. */
function readFromWorkers(fleet: Fleet, credentials: () => WorkerCredential[]): Promise<void> {
  const { redis, log } = fleet;
  let credentialByStream = new Map<string, string>();
  const refreshStreams = () => {
    const names = [sharedCredential, ...credentials().map(({ name }) => name)];
    credentialByStream = new Map(names.map((name) => [messageStreamOf(name), name]));
    return [operatorRequests, ...credentialByStream.keys()];
  };
  // By stream: the number of malformed messages since the last report, and the time of that report.
  const reports = new Map<string, { count: number; reportedAt: number }>();
  const reject = (stream: string) => {
    const { count, reportedAt } = reports.get(stream) ?? { count: 0, reportedAt: Number.NEGATIVE_INFINITY };
    const at = performance.now();
    const isDue = at - reportedAt >= reportMs;
    if (isDue) log.warn({ stream, count: count + 1 }, "dropped malformed messages");
    reports.set(stream, isDue ? { count: 0, reportedAt: at } : { count: count + 1, reportedAt });
  };
  return readMessages(redis, refreshStreams, (message, stream, bytes) => {
    if (fleet.otherService !== null) return;
    const credential = credentialByStream.get(stream);
    if (credential !== undefined && checks.message.Check(message)) receiveMessage(fleet, credential, message, bytes);
    else if (stream === operatorRequests && checks.request.Check(message))
      dismissWorker(fleet, message.worker, message.kind);
    else reject(stream);
  });
}

function receiveMessage(fleet: Fleet, credential: string, message: FromWorker, bytes: number): void {
  if (message.kind === "lines") receiveBatch(fleet, credential, message, bytes);
  else if (message.kind === "hello") receiveHello(fleet, credential, message);
  else {
    const worker = fleet.workers.get(message.worker);
    if (worker?.credential === credential) removeAbsentWorker(fleet, worker, "was shut down");
  }
}

/** Gives the workers with a credential access to Redis, and takes it from all others. */
async function grantAccess(fleet: Fleet, access: WorkerAccess): Promise<void> {
  const { redis, log, workers, away } = fleet;
  const credentials = access.credentials();
  const hasCredential = ({ credential }: { credential: string }) =>
    credential === sharedCredential || credentials.some(({ name }) => name === credential);
  for (const worker of workers.values()) if (!hasCredential(worker)) forgetWorker(fleet, worker, "lost its credential");
  for (const [name, worker] of away) if (!hasCredential(worker)) away.delete(name);
  try {
    await loadScripts(redis);
    await applyCredentials(redis, credentials, access.applied);
    access.problem = "";
  } catch (error) {
    // The connection itself reports this.
    if (redis.problem !== null || redis.isClosed) return;
    const problem = String(error);
    if (problem !== access.problem && isUserRefused(error))
      log.warn(
        { reason: problem, credentials: credentials.length },
        "Redis refuses to create users, so workers can't use credentials of their own; allow the service ACL SETUSER, or give workers its EVALD_REDIS_URL, with which each can read what all others do",
      );
    else if (problem !== access.problem && credentials.length > 0)
      log.warn({ reason: problem }, "could not give workers access to Redis");
    access.problem = problem;
  }
}

/**
 * Regularly forgets workers that are gone, sends the others their state, and repeats orders that were not confirmed. `remember` stores the workers
 * for the next process.
 */
export function startBeats(fleet: Fleet, owner: string, access: WorkerAccess, remember: () => void) {
  const { goneMs, redis, version, workers, sessions } = fleet;
  let lastAt = performance.now();
  return setInterval(async () => {
    const at = performance.now();
    // After a pause of this process, it first reads what workers sent in the meantime.
    const wasAsleep = at - lastAt > goneMs / 2;
    lastAt = at;
    if (fleet.isClaimed) await claimRedis(fleet, owner, "renew");
    for (const worker of workers.values()) {
      if (wasAsleep) worker.heardAt = at;
      if (at - worker.heardAt > goneMs)
        removeAbsentWorker(fleet, worker, `has sent nothing for ${goneMs / 1000} seconds`);
      else sendState(fleet, worker);
    }
    remember();
    if (fleet.isClaimed && fleet.otherService === null) {
      grantAccess(fleet, access);
      for (const session of sessions.values())
        if (!session.isConfirmed && at - session.orderedAt > confirmMs && redis.problem === null)
          sendOrder(fleet, session);
      putValue(redis, workerList, { version, workers: listWorkers(fleet) }, goneMs);
    }
    notifyOfChange(fleet);
  }, beatMs);
}
