/** An error that the caller can correct: exit code 2. */
export class UsageError extends Error {}

const maxFailures = 30;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The REST API of an evald server. Every function throws UsageError for requests that the server rejects, and Error if it can't be
 * reached or answers otherwise.
 * @param {{ url: string, key: () => Promise<string>, pauseMs?: number }} options
 */
export function createService({ url, key, pauseMs = 2000 }) {
  const base = url.replace(/\/+$/, "");
  /** @type {Promise<string> | undefined} */
  let held;

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async function request(method, path, body) {
    const isRepeatable = method === "GET" || held !== undefined;
    const idempotencyKey = crypto.randomUUID();
    held ??= key();
    const headers = { authorization: `Bearer ${await held}`, "user-agent": "evald-action" };
    for (let failures = 1; ; failures++) {
      try {
        const response = await fetch(`${base}/api/v1${path}`, {
          method,
          headers:
            body === undefined
              ? headers
              : { ...headers, "content-type": "application/json", "idempotency-key": idempotencyKey },
          body: body === undefined ? undefined : JSON.stringify(body),
        });
        return { body: await readAnswer(base, response), total: Number(response.headers.get("x-total-count") ?? 0) };
      } catch (error) {
        if (error instanceof UsageError || !isRepeatable || failures >= maxFailures) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
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

/** @param {string} base @param {Response} response */
async function readAnswer(base, response) {
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const detail =
    answer?.detail ?? `${base} returned status ${response.status} without an evald response. Check the URL.`;
  if (answer?.error && response.status >= 400 && response.status < 429) throw new UsageError(detail);
  throw new Error(detail);
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
  const token = await (await fetch(at, { headers: { authorization: `Bearer ${secret}` } })).json();
  const response = await fetch(`${base}/api/v1/oidc/exchange`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: token.value, organization: env.EVALD_ORG || undefined }),
  });
  const { key } = await readAnswer(base, response);
  console.log(`::add-mask::${key}`);
  return key;
}
