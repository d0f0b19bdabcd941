/** An error that the caller can correct: exit code 2. */
export class UsageError extends Error {}

const maxFailures = 30;
const maxWaitMs = 60_000;
const maxAnswerMs = 60_000;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** What may succeed later: the server can't be reached, is restarting or has too many requests. `waitMs`: as long as it asked for. */
class TemporaryError extends Error {
  /** @param {string} message @param {number} [waitMs] */
  constructor(message, waitMs = 0) {
    super(message);
    this.waitMs = waitMs;
  }
}

/**
 * The REST API of an evald server. Every function throws UsageError for requests that the server rejects, and Error if it can't be
 * reached or answers otherwise. Each request is repeated until it is answered, at most 30 times: those that start something have an
 * idempotency key.
 * @param {{ url: string, key: () => Promise<string>, pauseMs?: number }} options
 */
export function createService({ url, key, pauseMs = 2000 }) {
  const base = url.replace(/\/+$/, "");
  /** @type {string | undefined} */
  let heldKey;

  /** @param {string} method @param {string} path @param {unknown} [body] An archive is sent as it is; everything else as JSON. */
  async function request(method, path, body) {
    const idempotencyKey = crypto.randomUUID();
    return await repeat(pauseMs, async () => {
      heldKey ??= await key();
      const headers = { authorization: `Bearer ${heldKey}`, "user-agent": "evald-action" };
      const response = await send(`${base}/api/v1${path}`, {
        method,
        headers:
          body === undefined
            ? headers
            : {
                ...headers,
                "content-type": Buffer.isBuffer(body) ? "application/gzip" : "application/json",
                "idempotency-key": idempotencyKey,
              },
        body: body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      });
      return { body: await readAnswer(base, response), total: Number(response.headers.get("x-total-count") ?? 0) };
    });
  }

  return {
    base,
    /** The ID of a prompt by ID or title. @param {string} name */
    async findPrompt(name) {
      if (uuid.test(name)) return name.toLowerCase();
      const found = [];
      for (let offset = 0, total = 1; offset < total; offset += 1000) {
        const page = await request("GET", `/prompts?limit=1000&offset=${offset}`);
        found.push(...page.body.filter((each) => each.title === name));
        total = page.total;
      }
      if (found.length === 1) return found[0].id;
      throw new UsageError(
        found.length === 0
          ? `No prompt has the ID or title ${JSON.stringify(name)}.`
          : `${found.length} prompts have the title ${JSON.stringify(name)}. Use an ID.`,
      );
    },
    /** The ID of an archive with a built docs site. @param {Buffer} archive */
    uploadSite: async (archive) => (await request("POST", "/archives?kind=site", archive)).body.id,
    /** @param {unknown} body */
    requestGate: async (body) => (await request("POST", "/gates", body)).body,
    /** @param {string} id */
    getGate: async (id) => (await request("GET", `/gates/${id}`)).body,
    /** @param {string} id @param {unknown} body */
    runPrompt: async (id, body) => (await request("POST", `/prompts/${id}/run`, body)).body,
    /** @param {string} id */
    getRun: async (id) => (await request("GET", `/runs/${id}`)).body,
  };
}

/** Calls `attempt` until it doesn't fail for the time being. @template T @param {number} pauseMs @param {() => Promise<T>} attempt @returns {Promise<T>} */
async function repeat(pauseMs, attempt) {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof TemporaryError) || failures >= maxFailures || error.waitMs > maxWaitMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, error.waitMs)));
    }
  }
}

/** Throws TemporaryError with the address and the cause if there is no response. @param {string | URL} url @param {RequestInit} options */
async function send(url, options) {
  try {
    return await fetch(url, { ...options, signal: AbortSignal.timeout(maxAnswerMs) });
  } catch (error) {
    const cause = error.cause?.message || error.cause?.code || error.message;
    throw new TemporaryError(`${new URL(url).origin} could not be reached: ${cause}`);
  }
}

/** @param {string} base @param {Response} response */
async function readAnswer(base, response) {
  const { status, headers } = response;
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const detail = answer?.detail ?? `${base} returned status ${status} without an evald response. Check the URL.`;
  if (status === 429 || status >= 500)
    throw new TemporaryError(
      `${base} returned status ${status}. ${detail}`,
      Number(headers.get("retry-after")) * 1000 || 0,
    );
  throw answer?.error ? new UsageError(detail) : new Error(detail);
}

/**
 * The API key of this job: the given one, else one in exchange for its ID token.
 * @param {Record<string, string | undefined>} env
 */
export async function getKey(env) {
  if (env.EVALD_KEY) return env.EVALD_KEY;
  const { ACTIONS_ID_TOKEN_REQUEST_URL: address, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret } = env;
  if (!address || !secret)
    throw new UsageError("Pass api-key, or give the job the permission id-token: write to use its ID token.");
  const base = (env.EVALD_URL ?? "").replace(/\/+$/, "");
  const at = new URL(address);
  at.searchParams.set("audience", base);
  const issued = await send(at, { headers: { authorization: `Bearer ${secret}` } });
  if (!issued.ok) throw new TemporaryError(`GitHub returned status ${issued.status} in place of an ID token.`);
  const token = await issued.json();
  const response = await send(`${base}/api/v1/oidc/exchange`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: token.value, organization: env.EVALD_ORG || undefined }),
  });
  const { key } = await readAnswer(base, response);
  console.log(`::add-mask::${key}`);
  return key;
}
