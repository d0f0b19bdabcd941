import { version } from "../../package.json" with { type: "json" };
import type { Archive } from "../archives/schema.ts";
import { AppError, badRequest, conflict, type ErrorCode, errorStatus, notFound, unavailable } from "../errors.ts";
import type { Gate, GateRequest } from "../gates/schema.ts";
import type { Paged } from "../http/paging.ts";
import { toGuardError } from "../net/failure.ts";
import type {
  Delivery,
  DeliveryDetail,
  Destination,
  DestinationInput,
  DestinationPatch,
  NewDestination,
} from "../notifications/schema.ts";
import type { Prompt, PromptInput, PromptPatch, PromptSummary } from "../prompts/schema.ts";
import type { Provider, ProviderInput } from "../providers/schema.ts";
import type { Regrade, RegradeRequest } from "../regrades/schema.ts";
import type { Report } from "../reports/schema.ts";
import type { Run, RunRequest, RunResponse } from "../runs/schema.ts";
import type { TagSchedule, TagScheduleResult } from "../schedules/schema.ts";
import type { Trust, TrustInput } from "../trusts/schema.ts";

type Query = Record<string, string | number | undefined>;
type Sent = {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, with its content type. */
  file?: { content: Uint8Array<ArrayBuffer>; type: string };
  idempotencyKey?: string;
};

/** The service or its proxy may restart while a command waits, so a request that may be repeated is repeated this often, with this pause. */
const maxFailures = 30;
const pauseMs = 2_000;

export type Api = ReturnType<typeof createApi>;

/**
 * The REST API of the service at `base`, as commands use it. `send` delivers a request: over the network, or to a service in this process.
 * Every function throws the AppError that the service returned, what `send` throws, and unavailable if the answer isn't its own.
 */
export function createApi(base: string, key: string, send: (request: Request) => Promise<Response>) {
  // A first request that fails says at once that nothing is there.
  let wasReached = false;

  async function request(method: string, path: string, options: Sent): Promise<Response> {
    const mayRepeat = method === "GET" || options.idempotencyKey !== undefined;
    for (let failures = 1; ; failures++) {
      try {
        const response = await requestOnce(method, path, options);
        wasReached = true;
        return response;
      } catch (error) {
        const isTransient =
          error instanceof AppError && ["unavailable", "internal", "rate_limited"].includes(error.code);
        if (!isTransient || !wasReached || !mayRepeat || failures >= maxFailures) throw error;
        await Bun.sleep(error.retryAfterSeconds ? error.retryAfterSeconds * 1000 : pauseMs);
      }
    }
  }

  async function requestOnce(method: string, path: string, { query = {}, body, file, idempotencyKey }: Sent) {
    const url = new URL(`${base}/api/v1${path}`);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`);
    const headers = {
      authorization: `Bearer ${key}`,
      "user-agent": `evald-cli/${version}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(file && { "content-type": file.type }),
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    };
    const content = body === undefined ? file?.content : JSON.stringify(body);
    return await reach(base, () => send(new Request(url, { method, headers, body: content })));
  }

  async function call<T>(method: string, path: string, options: Sent = {}): Promise<T> {
    const response = await request(method, path, options);
    return (await read<T>(response)) ?? Promise.reject(foreign(base, response));
  }

  async function list<T>(path: string, query: Query = {}): Promise<Paged<T>> {
    const response = await request("GET", path, { query });
    const items = await read<T[]>(response);
    if (items === null) throw foreign(base, response);
    return { items, total: Number(response.headers.get("x-total-count") ?? items.length) };
  }

  const at = encodeURIComponent;
  return {
    /** Without a trailing slash. */
    base,
    listPrompts: (query: { limit?: number; offset?: number; includeArchived?: "1"; tag?: string }) =>
      list<PromptSummary>("/prompts", query),
    getPrompt: (id: string) => call<Prompt>("GET", `/prompts/${at(id)}`),
    createPrompt: (body: PromptInput) => call<Prompt>("POST", "/prompts", { body }),
    updatePrompt: (id: string, body: PromptPatch) => call<Prompt>("PATCH", `/prompts/${at(id)}`, { body }),
    scheduleTag: (body: TagSchedule) => call<TagScheduleResult>("POST", "/prompts/schedule", { body }),
    runPrompt: (id: string, body: RunRequest) =>
      call<RunResponse>("POST", `/prompts/${at(id)}/run`, { body, idempotencyKey: crypto.randomUUID() }),
    listProviders: (query: { limit?: number }) => list<Provider>("/providers", query),
    createProvider: (body: ProviderInput) => call<Provider>("POST", "/providers", { body }),
    listRuns: (query: { promptId?: string; limit?: number }) => list<Run>("/runs", query),
    getRun: (id: string) => call<Run>("GET", `/runs/${at(id)}`),
    getReport: (slug: string) => call<Report>("GET", `/reports/${at(slug)}`),
    requestGate: (body: GateRequest) => call<Gate>("POST", "/gates", { body, idempotencyKey: crypto.randomUUID() }),
    listTrusts: () => list<Trust>("/oidc/trusts"),
    createTrust: (body: TrustInput) => call<Trust>("POST", "/oidc/trusts", { body }),
    deleteTrust: (id: string) => call<Trust>("DELETE", `/oidc/trusts/${at(id)}`),
    listDestinations: () => list<Destination>("/destinations", { limit: 1000 }),
    createDestination: (body: DestinationInput) => call<NewDestination>("POST", "/destinations", { body }),
    updateDestination: (id: string, body: DestinationPatch) =>
      call<Destination>("PATCH", `/destinations/${at(id)}`, { body }),
    deleteDestination: (id: string) => call<Destination>("DELETE", `/destinations/${at(id)}`),
    rotateSecret: (id: string) => call<NewDestination>("POST", `/destinations/${at(id)}/rotate`),
    testDestination: (id: string) => call<Delivery>("POST", `/destinations/${at(id)}/test`),
    listDeliveries: (id: string, query: { status?: string; limit?: number }) =>
      list<Delivery>(`/destinations/${at(id)}/deliveries`, query),
    getDelivery: (id: string, delivery: string) =>
      call<DeliveryDetail>("GET", `/destinations/${at(id)}/deliveries/${at(delivery)}`),
    replayDelivery: (id: string, delivery: string) =>
      call<Delivery>("POST", `/destinations/${at(id)}/deliveries/${at(delivery)}/replay`),
    requestRegrade: (body: RegradeRequest) => call<Regrade>("POST", "/regrades", { body }),
    listArchives: () => list<Archive>("/archives", { limit: 1000 }),
    uploadArchive: (content: Uint8Array<ArrayBuffer>) =>
      call<Archive>("POST", "/archives", { file: { content, type: "application/gzip" } }),
    deleteArchive: (id: string) => call<Archive>("DELETE", `/archives/${at(id)}`),
    /** The pieces of the file. Throws unavailable if the connection is lost before its end. */
    exportFile: async (query: Query) => piecesOf(base, await request("GET", "/export", { query })),
    getGate: (id: string) => call<Gate>("GET", `/gates/${at(id)}`),
  };
}

/** Sends requests to the service at `base` over the network. Throws unavailable if it can't be reached. */
export const overNetwork =
  (base: string) =>
  async (request: Request): Promise<Response> => {
    try {
      return await fetch(request);
    } catch (error) {
      throw unavailable(
        `Cannot reach ${base}: ${networkProblem(error, base)}. Check the URL, and that the service is running.`,
      );
    }
  };

/** Why a request to a URL failed, without a period. `answering`: the response had begun. */
export const networkProblem = (error: unknown, url: string, answering = false): string =>
  toGuardError(error, new URL(url), answering).message;

/** The successful response of a service. Throws the AppError that it returned. */
async function reach(base: string, send: () => Promise<Response>): Promise<Response> {
  const response = await send();
  if (!response.ok) throw await toError(base, response);
  return response;
}

async function* piecesOf(base: string, { body }: Response): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body ?? []) yield piece;
  } catch (error) {
    throw unavailable(`Lost the connection to ${base}: ${networkProblem(error, base, true)}.`);
  }
}

/** The JSON of a successful response. Throws as the functions of Api do. */
export async function readAnswer<T>(base: string, send: () => Promise<Response>): Promise<T> {
  const response = await reach(base, send);
  return (await read<T>(response)) ?? Promise.reject(foreign(base, response));
}

/** The JSON of a response; null if it is something else, such as the page of a proxy. */
async function read<T>(response: Response): Promise<T | null> {
  return await response.json().catch(() => null);
}

const foreign = (base: string, { status }: Response) =>
  unavailable(`${base} returned status ${status} without an evald response. Check the URL.`);

async function toError(base: string, response: Response): Promise<AppError> {
  const { error = "", detail } = (await read<{ error?: string; detail?: string }>(response)) ?? {};
  if (!(error in errorStatus) || detail === undefined) return foreign(base, response);
  const retryAfterSeconds = Number(response.headers.get("retry-after")) || undefined;
  return new AppError(error as ErrorCode, detail, { retryAfterSeconds });
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const isId = (text: string): boolean => uuid.test(text);

/** Prompts read at once. */
const pageSize = 1000;

/**
 * The ID of a prompt, by ID or title. Throws bad_request for a title that several prompts have, not_found for one that none has, and conflict
 * without `archived` if only archived ones have it.
 */
export async function findPromptId(api: Api, name: string, { archived = false } = {}): Promise<string> {
  if (isId(name)) return name.toLowerCase();
  const titled: PromptSummary[] = [];
  for (let offset = 0, total = 1; offset < total; offset += pageSize) {
    const page = await api.listPrompts({ limit: pageSize, offset, includeArchived: "1" });
    titled.push(...page.items.filter(({ title }) => title === name));
    total = page.total;
  }
  const found = titled.filter(({ status }) => archived || status !== "archived").map(({ id }) => id);
  if (found.length > 1)
    throw badRequest(`${found.length} prompts have the title ${JSON.stringify(name)}. Use an ID: ${found.join(", ")}.`);
  const [only] = found;
  if (only) return only;
  const [hidden] = titled;
  throw hidden
    ? conflict(
        `The prompt ${JSON.stringify(name)} is archived. Make it active again with: evald prompt unarchive ${hidden.id}`,
      )
    : notFound(`No prompt has the ID or title ${JSON.stringify(name)}. List prompts with evald prompt list.`);
}
