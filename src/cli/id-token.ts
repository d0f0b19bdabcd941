import { badRequest, unavailable } from "../errors.ts";
import type { ExchangedKey } from "../trusts/schema.ts";
import { networkProblem, overNetwork, readAnswer } from "./api.ts";

type Env = Record<string, string | undefined>;

/**
 * The API key of this process for the service at `base`: EVALD_KEY, or else a key that is exchanged for the ID token of a CI job. The ID token is
 * EVALD_ID_TOKEN (GitLab), or requested from GitHub Actions if the job has the permission `id-token: write`. Throws bad_request if there is no key
 * and no ID token, and what the exchange throws.
 */
export async function getKey(base: string, env: Env): Promise<string> {
  if (env.EVALD_KEY) return env.EVALD_KEY;
  const token = env.EVALD_ID_TOKEN || (await requestToken(base, env));
  if (token === null)
    throw badRequest(
      "EVALD_KEY is not set. Create an API key on the server with evald key create, and set EVALD_KEY to it. In CI, an ID token works too.",
    );
  const body = JSON.stringify({ token, organization: env.EVALD_ORG || undefined });
  const headers = { "content-type": "application/json" };
  const request = new Request(`${base}/api/v1/oidc/exchange`, { method: "POST", headers, body });
  const { key } = await readAnswer<ExchangedKey>(base, await overNetwork(base)(request));
  return key;
}

/** Requests an ID token for this job from GitHub Actions; null outside of such a job. */
async function requestToken(audience: string, env: Env): Promise<string | null> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: address, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret } = env;
  if (!address || !secret) return null;
  const url = new URL(address);
  url.searchParams.set("audience", audience);
  const response = await fetch(url, { headers: { authorization: `Bearer ${secret}` } }).catch((error) => {
    throw unavailable(`GitHub returned no ID token: ${networkProblem(error, address)}.`);
  });
  const { value } = (await response.json().catch(() => ({}))) as { value?: string };
  if (!value) throw unavailable(`GitHub returned status ${response.status} and no ID token.`);
  return value;
}
