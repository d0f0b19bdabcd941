import { connect } from "node:net";
import { modelProviders, providerVariables } from "../config/model-settings.ts";
import {
  NoAnswerError,
  type OperatorAnswer,
  type OperatorRequest,
  requestFromOperator,
} from "../net/operator-request.ts";
import { type CheckInput, type Finding, notApplicable, ok, problemFound } from "./finding.ts";
import type { Cause } from "./problems.ts";

/** A request to a server. If it gets no answer, the finding has this `subject`. `causes`: its cause by the kind of the error. */
type Question = Omit<OperatorRequest, "signal"> & { subject: string; causes: Record<NoAnswerError["kind"], Cause> };

/** Sends a request to a server that the operator's settings name. Returns its answer, or the finding to report if there is none. */
async function ask(
  { signal, peerClocks, now }: CheckInput,
  url: string,
  { subject, causes, ...request }: Question,
): Promise<OperatorAnswer | Finding> {
  const { host } = new URL(url);
  try {
    const answer = await requestFromOperator(url, { ...request, signal });
    if (answer.dateAt !== null) peerClocks.set(host, answer.dateAt - now());
    return answer;
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    return problemFound(causes[error.kind], `${host}: ${error.message}`, subject);
  }
}

/** Whether a proxy answered because it couldn't reach the server behind it. */
const isFromProxy = ({ status }: OperatorAnswer): boolean => status >= 502 && status <= 504;

const isFinding = (answer: OperatorAnswer | Finding): answer is Finding => "state" in answer;

const parseJson = (text: string): Record<string, unknown> | null => {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
};

/** Whether a request to the public URL reaches the service that runs here. */
export async function checkBaseUrl(input: CheckInput): Promise<Finding> {
  const { config, service } = input;
  const { baseUrl } = config;
  if (baseUrl === null) return notApplicable("EVALD_BASE_URL is not set");
  if (!service?.instance) return notApplicable("no service is running that could answer");
  const causes = { unreachable: "base_url_unreachable", certificate: "base_url_unreachable" } as const;
  const answer = await ask(input, `${baseUrl}/healthz`, { causes, subject: baseUrl });
  if (isFinding(answer)) return answer;
  if (parseJson(answer.text)?.instance === service.instance) return ok(baseUrl);
  const { host } = new URL(baseUrl);
  if (isFromProxy(answer))
    return problemFound("base_url_unreachable", `${host} returned status ${answer.status}`, baseUrl);
  return problemFound(
    "base_url_elsewhere",
    `${host} returned status ${answer.status}, not the answer of this service`,
    baseUrl,
  );
}

/** Whether the identity provider publishes the metadata and keys that sign-in needs. */
export async function checkOidc(input: CheckInput): Promise<Finding> {
  const { oidc } = input.config.people;
  if (oidc === null) return notApplicable("EVALD_OIDC_ISSUER is not set");
  const { issuer } = oidc;
  const causes = { unreachable: "oidc_unreachable", certificate: "oidc_certificate" } as const;
  const answer = await ask(input, `${issuer}/.well-known/openid-configuration`, { causes, subject: issuer });
  if (isFinding(answer)) return answer;
  if (answer.status >= 500) return problemFound("oidc_unreachable", `it returned status ${answer.status}`, issuer);
  const metadata = answer.status === 200 ? parseJson(answer.text) : null;
  if (metadata === null)
    return problemFound("oidc_invalid", `it returned status ${answer.status} and no metadata`, issuer);
  const missing = ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"].filter(
    (name) => typeof metadata[name] !== "string",
  );
  if (missing.length > 0) return problemFound("oidc_invalid", `its metadata lacks ${missing.join(", ")}`, issuer);
  if (String(metadata.issuer).replace(/\/+$/, "") !== issuer)
    return problemFound("oidc_wrong_issuer", `its issuer is ${metadata.issuer}`, issuer);
  const keySet = await ask(input, String(metadata.jwks_uri), {
    causes: { unreachable: "oidc_no_keys", certificate: "oidc_certificate" },
    subject: issuer,
  });
  if (isFinding(keySet)) return keySet;
  const keys = parseJson(keySet.text)?.keys;
  if (!Array.isArray(keys) || keys.length === 0)
    return problemFound("oidc_no_keys", `${metadata.jwks_uri} returned status ${keySet.status} and no keys`, issuer);
  return ok(issuer);
}

/**
 * Whether each model server that the environment configures answers and accepts its key. The check lists the server's models, which costs nothing.
 */
export async function checkModels(input: CheckInput): Promise<Finding[]> {
  const { modelEndpoints } = input.config;
  const endpoints = modelProviders.flatMap((provider) => {
    const { key, baseUrl } = modelEndpoints[provider];
    const mayLackKey = provider === "openai-compatible";
    return baseUrl !== null && (key !== null || mayLackKey) ? [{ provider, key, baseUrl }] : [];
  });
  if (endpoints.length === 0) return [notApplicable("no key is set; the explorer works without one")];
  const causes = { unreachable: "model_unreachable", certificate: "model_certificate" } as const;
  return await Promise.all(
    endpoints.map(async ({ provider, key, baseUrl }) => {
      const headers = keyHeaders(provider, key ?? "");
      const answer = await ask(input, `${baseUrl}/models`, { causes, subject: baseUrl, headers });
      if (isFinding(answer)) return answer;
      const { status, text } = answer;
      const variable = providerVariables[provider].key;
      // Google returns 400 for an invalid key, with a text about the “API key”.
      const isInvalidKey = status === 400 && /api.?key/i.test(text);
      if (status === 401 || status === 403 || isInvalidKey)
        return problemFound("model_key_refused", `${provider} returned status ${status} for ${variable}`, baseUrl);
      if (status >= 500) return problemFound("model_failed", `${provider} returned status ${status}`, baseUrl);
      // Not every compatible server lists its models.
      return ok(`${provider} answers`, baseUrl);
    }),
  );
}

/** The headers with which a provider takes its key. */
function keyHeaders(provider: (typeof modelProviders)[number], key: string): Record<string, string> {
  if (key === "") return {};
  if (provider === "anthropic") return { "x-api-key": key, "anthropic-version": "2023-06-01" };
  return provider === "google" ? { "x-goog-api-key": key } : { authorization: `Bearer ${key}` };
}

/** Whether the OpenTelemetry collector accepts traces. The check sends an export without any traces. */
export async function checkOtlp(input: CheckInput): Promise<Finding> {
  const { otlp } = input.config.telemetry;
  if (otlp === null) return notApplicable("EVALD_OTLP_URL is not set");
  const { url, headers } = otlp;
  const answer = await ask(input, url, {
    causes: { unreachable: "otlp_unreachable", certificate: "otlp_certificate" },
    subject: url,
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: '{"resourceSpans":[]}',
  });
  if (isFinding(answer)) return answer;
  const { status } = answer;
  if (status === 401 || status === 403) return problemFound("otlp_refused", `it returned status ${status}`, url);
  if (isFromProxy(answer)) return problemFound("otlp_unreachable", `it returned status ${status}`, url);
  // Some collectors refuse an export without traces with status 400. Status 429 only means that the collector is busy.
  if (status < 300 || status === 400 || status === 429) return ok(url);
  return problemFound("otlp_failed", `it returned status ${status}`, url);
}

/** Whether this machine, if it is a worker, reaches the gateway of the service. */
export async function checkGateway(input: CheckInput): Promise<Finding> {
  const { gatewayUrl } = input.config.workers;
  if (gatewayUrl === null) return notApplicable("EVALD_GATEWAY_URL is not set");
  const causes = { unreachable: "gateway_unreachable", certificate: "gateway_certificate" } as const;
  const answer = await ask(input, `${gatewayUrl}/`, { causes, subject: gatewayUrl });
  if (isFinding(answer)) return answer;
  // This is how the gateway refuses a request without the token of a run.
  const error = parseJson(answer.text)?.error as { type?: unknown } | undefined;
  if (answer.status === 401 && error?.type === "unauthorized") return ok(gatewayUrl);
  if (isFromProxy(answer))
    return problemFound("gateway_unreachable", `it returned status ${answer.status}`, gatewayUrl);
  return problemFound("gateway_elsewhere", `it returned status ${answer.status}`, gatewayUrl);
}

/** Whether the connected workers can take sessions. */
export function checkWorkers({ workers }: CheckInput): Finding[] {
  if (workers === null) return [notApplicable("agents run on this machine")];
  const findings = workers.flatMap(({ name, state, problem, version }) => {
    if (state === "refused") return [problemFound("worker_refused", `${name} has version ${version}`, name)];
    return state === "not_ready" ? [problemFound("worker_not_ready", problem ?? "it isn't ready", name)] : [];
  });
  return findings.length > 0 ? findings : [ok(`${workers.length} connected`)];
}

const proxyVariables = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"];

/** Whether the proxies of the environment accept connections. */
export async function checkProxies({ env, signal }: CheckInput): Promise<Finding[]> {
  const variables = proxyVariables.filter((name) => env[name]);
  if (variables.length === 0) return [notApplicable("no proxy is set")];
  return await Promise.all(
    variables.map(async (name) => {
      const url = URL.parse(env[name] ?? "");
      if (!url || !/^https?:$/.test(url.protocol))
        return problemFound("proxy_unreachable", `${name} is no http URL`, name);
      const problem = await findConnectionProblem(url, signal);
      return problem === null ? ok(url.host, name) : problemFound("proxy_unreachable", `${url.host}: ${problem}`, name);
    }),
  );
}

/** Connects to a host and closes the connection. Returns why this failed; null: it succeeded. */
function findConnectionProblem({ hostname, port, protocol }: URL, signal: AbortSignal): Promise<string | null> {
  return new Promise((done) => {
    const host = hostname.replace(/^\[|\]$/g, "");
    const socket = connect({ host, port: Number(port) || (protocol === "https:" ? 443 : 80) });
    const end = (problem: string | null) => {
      socket.destroy();
      done(problem);
    };
    socket.once("connect", () => end(null));
    socket.once("error", (error) => end("code" in error ? String(error.code) : error.message));
    signal.addEventListener("abort", () => end("it did not answer in time"), { once: true });
  });
}
