import { version } from "../../package.json" with { type: "json" };
import { AppError, badRequest, conflict, type ErrorCode, errorStatus, notFound, unavailable } from "../errors.ts";
import { toGuardError } from "../net/failure.ts";
import type { PromptSummary } from "../prompts/schema.ts";
import type { Provider } from "../providers/schema.ts";
import { isId } from "../schema.ts";
import type { Operations } from "./operations.ts";

type Operation = keyof Operations;
type ListOperation = { [O in Operation]: Operations[O] extends { result: unknown[] } ? O : never }[Operation];

/** The names of the placeholders in a path such as `/runs/{runId}`. */
type PathName<O> = O extends `${string}{${infer Name}}${infer Rest}` ? Name | PathName<Rest> : never;

type PathInput<O> = [PathName<O>] extends [never] ? unknown : { path: Record<PathName<O>, string> };
type BodyInput<O extends Operation> = Operations[O] extends { body: infer Body } ? { body: Body } : unknown;
type QueryInput<O extends Operation> = Operations[O] extends { query: infer Query } ? OptionalQuery<Query> : unknown;
/** The query may be omitted if all of its fields are optional. */
type OptionalQuery<Query> = Partial<Query> extends Query ? { query?: Query } : { query: Query };

/** The input of an operation: the values in its path, its query and its body. An operation with an idempotency key is retried after a failure. */
type OperationInput<O extends Operation> = { idempotencyKey?: string } & PathInput<O> & BodyInput<O> & QueryInput<O>;
/** The input may be omitted if all of its fields are optional. */
type Arguments<O extends Operation> =
  Partial<OperationInput<O>> extends OperationInput<O> ? [input?: OperationInput<O>] : [input: OperationInput<O>];

type UntypedInput = {
  path?: Record<string, string>;
  query?: object;
  body?: unknown;
  idempotencyKey?: string;
  /** Only for an event stream: resumes it after this message. */
  lastEventId?: string;
};
type ServiceConnection = {
  base: string;
  key: string;
  send: (request: Request) => Promise<Response>;
  /** Whether any request had a response. Until then, a failure is reported immediately, because the URL may be wrong. */
  wasReached: boolean;
};

/** The service or its proxy may restart while a command waits. So a request that is safe to repeat is retried this often, with this pause. */
const maxFailures = 30;
const pauseMs = 2_000;

export type Api = ReturnType<typeof createApi>;

/**
 * The REST API of the service at `base`, which has no trailing slash. `send` delivers a request over the network, or to a service in this process.
 * `executesRuns`: whether the runs of the service end with this process; null: the service is another process. Every function takes an operation such
 * as `GET /runs/{runId}`. It throws the AppError that the service returned, what `send` throws, and unavailable if the response isn't from evald.
 */
export function createApi(
  base: string,
  key: string,
  send: ServiceConnection["send"],
  executesRuns: (() => boolean) | null = null,
) {
  const service: ServiceConnection = { base, key, send, wasReached: false };
  return {
    base,
    isLocal: executesRuns !== null,
    executesRuns: () => executesRuns?.() ?? false,
    /** The result of an operation. */
    async request<O extends Operation>(operation: O, ...[input]: Arguments<O>): Promise<Operations[O]["result"]> {
      return await readJson(base, await sendUntilAnswered(service, operation, input));
    },
    /** A page of a list, with the number of items in the whole list. */
    async list<O extends ListOperation>(operation: O, ...[input]: Arguments<O>) {
      const response = await sendUntilAnswered(service, operation, input);
      const items: Operations[O]["result"] = await readJson(base, response);
      return { items, total: Number(response.headers.get("x-total-count") ?? items.length) };
    },
    /** The response to a request for a path below `/api/v1`, which may contain a query. */
    async send(method: string, path: string, input: Omit<UntypedInput, "path"> = {}): Promise<Response> {
      return await sendUntilAnswered(service, `${method} ${path}`, input);
    },
    /** The pieces of a file. Throws unavailable if the connection is lost before its end. */
    async download<O extends Operation>(operation: O, ...[input]: Arguments<O>): Promise<AsyncIterable<Uint8Array>> {
      return piecesOf(base, await sendUntilAnswered(service, operation, input));
    },
  };
}

/** The commands that cancel what an interrupted command has requested. */
const cancelCommands = {
  run: "cancel",
  gate: "cancel",
  experiment: "experiment cancel",
  bisect: "bisect --cancel",
  calibration: "calibrate --stop",
} as const;

/** The failure to print when a command is interrupted while it waits for runs or gates. It says whether they continue, and how to cancel them. */
export function toInterruptionFailure(
  api: Api,
  what: keyof typeof cancelCommands,
  ids: string[],
): { error: string; detail: string } {
  const names = `The ${what}${ids.length === 1 ? "" : "s"} ${ids.join(", ")}`;
  const detail = api.executesRuns()
    ? `${names} stopped with this command, and will go on when a service uses the data directory.`
    : `${names} will go on without this command, and may cost money.`;
  return {
    error: "interrupted",
    detail: `${detail} To cancel: ${ids.map((id) => `evald ${cancelCommands[what]} ${id}`).join("; ")}`,
  };
}

async function sendUntilAnswered(
  service: ServiceConnection,
  operation: string,
  input: UntypedInput = {},
): Promise<Response> {
  const mayRepeat = operation.startsWith("GET ") || input.idempotencyKey !== undefined;
  for (let failures = 1; ; failures++) {
    try {
      const response = await checkResponse(service.base, await service.send(toRequest(service, operation, input)));
      service.wasReached = true;
      return response;
    } catch (error) {
      const isTransient = error instanceof AppError && ["unavailable", "internal", "rate_limited"].includes(error.code);
      if (!isTransient || !service.wasReached || !mayRepeat || failures >= maxFailures) throw error;
      await Bun.sleep(error.retryAfterSeconds ? error.retryAfterSeconds * 1000 : pauseMs);
    }
  }
}

/** The request of an operation. A Blob is sent as it is, any other body as JSON. */
function toRequest({ base, key }: ServiceConnection, operation: string, input: UntypedInput): Request {
  const { path = {}, query = {}, body, idempotencyKey, lastEventId } = input;
  const [method, template = ""] = operation.split(" ");
  const filledPath = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(path[name] ?? ""));
  const url = new URL(`${base}/api/v1${filledPath}`);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`);
  const content = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${key}`,
    "user-agent": `evald-cli/${version}`,
    ...(body === undefined ? {} : { "content-type": body instanceof Blob ? body.type : "application/json" }),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  };
  return new Request(url, { method, headers, body: content });
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

/** Why a request to a URL failed, without a period. `isAnswering`: the response had begun. */
export const networkProblem = (error: unknown, url: string, { isAnswering = false } = {}): string =>
  toGuardError(error, new URL(url), isAnswering).message;

/** Returns a successful response of the service at `base`. Throws the AppError that it returned. */
async function checkResponse(base: string, response: Response): Promise<Response> {
  if (!response.ok) throw await toError(base, response);
  return response;
}

async function* piecesOf(base: string, { body }: Response): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body ?? []) yield piece;
  } catch (error) {
    throw unavailable(`Lost the connection to ${base}: ${networkProblem(error, base, { isAnswering: true })}.`);
  }
}

/** The JSON of a successful response. Throws as the functions of Api do. */
export async function readAnswer<T>(base: string, response: Response): Promise<T> {
  return await readJson(base, await checkResponse(base, response));
}

/** The JSON of a response. Throws unavailable if it is something else, such as the page of a proxy. */
async function readJson<T>(base: string, response: Response): Promise<T> {
  const json = await response.json().catch(() => null);
  if (json === null) throw toForeignAnswerError(base, response);
  return json;
}

/** The error for a response that isn't from evald, such as the page of a proxy. */
const toForeignAnswerError = (base: string, { status }: Response) =>
  unavailable(`${base} returned status ${status} without an evald response. Check the URL.`);

async function toError(base: string, response: Response): Promise<AppError> {
  const { error = "", detail } = ((await response.json().catch(() => null)) ?? {}) as {
    error?: string;
    detail?: string;
  };
  if (!(error in errorStatus) || detail === undefined) return toForeignAnswerError(base, response);
  const retryAfterSeconds = Number(response.headers.get("retry-after")) || undefined;
  return new AppError(error as ErrorCode, detail, { retryAfterSeconds });
}

export const isNotFound = (error: unknown): boolean => error instanceof AppError && error.code === "not_found";
export const isConflict = (error: unknown): boolean => error instanceof AppError && error.code === "conflict";

/** Prompts read at once. */
const pageSize = 1000;

/**
 * The ID of a prompt, by ID or title. Throws bad_request for a title that several prompts have, not_found for one that none has, and conflict
 * without `archived` if only archived ones have it.
 */
export async function findPromptId(api: Api, name: string, { archived = false } = {}): Promise<string> {
  if (isId(name)) return name.toLowerCase();
  const promptsWithTitle: PromptSummary[] = [];
  for (let offset = 0, total = 1; offset < total; offset += pageSize) {
    const page = await api.list("GET /prompts", { query: { limit: pageSize, offset, includeArchived: "1" } });
    promptsWithTitle.push(...page.items.filter(({ title }) => title === name));
    total = page.total;
  }
  const ids = promptsWithTitle.filter(({ status }) => archived || status !== "archived").map(({ id }) => id);
  if (ids.length > 1)
    throw badRequest(`${ids.length} prompts have the title ${JSON.stringify(name)}. Use an ID: ${ids.join(", ")}.`);
  const [id] = ids;
  if (id) return id;
  const [archivedPrompt] = promptsWithTitle;
  throw archivedPrompt
    ? conflict(
        `The prompt ${JSON.stringify(name)} is archived. Make it active again with: evald prompt unarchive ${archivedPrompt.id}`,
      )
    : notFound(`No prompt has the ID or title ${JSON.stringify(name)}. List prompts with evald prompt list.`);
}

/** A provider, by ID or name. Throws bad_request for an unknown or ambiguous one. */
export async function findProvider(api: Api, name: string): Promise<Provider> {
  const { items } = await api.list("GET /providers", { query: { limit: 1000 } });
  const exact = items.find(({ id }) => id === name);
  const [provider, other] = exact ? [exact] : items.filter((each) => each.name === name);
  if (other) throw badRequest(`Several providers are named ${JSON.stringify(name)}. Use an ID.`);
  if (!provider) throw badRequest(`There is no provider ${JSON.stringify(name)}.`);
  return provider;
}
