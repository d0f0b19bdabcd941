import { randomBytes, timingSafeEqual } from "node:crypto";
import { rmSync } from "node:fs";
import { providerVariables } from "../../modelsettings.ts";
import { readRetryAfter } from "../../net/retryafter.ts";
import { type AgentEvent, AgentFailure } from "../agent.ts";
import { makeSocketFolder } from "../sockets.ts";
import { createBudget, type ModelLimits, type Spent } from "./budget.ts";
import { forward, type Outcome, refusal } from "./forward.ts";
import { hasPrice, type ModelAccess, outputFor, priceOf } from "./prices.ts";
import { boundOutput, findEndpoint, findHosted, nearHeader, toModelRequest } from "./wire.ts";

type Options = {
  now: () => number;
  /** Largest request of an agent. */
  maxBodyBytes?: number;
  silenceMs?: number;
  drainMs?: number;
  /** Failures of the provider in a row that end a run. */
  maxFailures?: number;
};

type SessionOptions = {
  model: ModelAccess;
  limits: ModelLimits;
  /** A call whose cost nobody knows ends the run: someone set a limit of money that would not hold. */
  mustHavePrice?: boolean;
  /** Longest time in which the model may send nothing; default: the gateway's. */
  silenceMs?: number;
  /** How long an answer is read on that nobody waits for any more, to know its cost; default: the gateway's. */
  drainMs?: number;
  onEvent: (event: AgentEvent) => void;
  /** Told once a limit, at 80 % of it. */
  onNearLimit?: (limit: keyof ModelLimits, share: number) => void;
  /** Told once: the run cannot go on with its model, and why. */
  onFailure: (failure: AgentFailure) => void;
};

/** A run's way to its model: `http://gateway/<provider>/…` over the socket, the token in the provider's own header. */
export type GatewaySession = {
  token: string;
  socketPath: string;
  spent(): Spent;
  /** Tells whoever calls the model, with each answer from now on, that a limit is near. */
  warn(limit: string): void;
  /** Refuses the token from now on. Resolved when nothing of the run is in the air any more. */
  close(): Promise<void>;
};

const maxCallsAtOnce = 16;
/** Tokens that a call may write however little money is left: enough to finish in order. */
const leastOutput = 1_000;
const passedHeaders = ["accept", "anthropic-version", "anthropic-beta", "openai-beta"];

/** The one way from agents to models: real keys stay here, and what is used is counted here. It listens from its first session on. */
export function createGateway({
  now,
  maxBodyBytes = 32 * 1024 * 1024,
  silenceMs = 300_000,
  drainMs = 10_000,
  maxFailures = 5,
}: Options) {
  const sessions = new Map<string, { digest: Buffer; answer: (request: Request) => Promise<Response> }>();
  let listening: { server: Bun.Server<undefined>; folder: string; socketPath: string } | undefined;

  function listen() {
    const { folder, socketPath } = makeSocketFolder("gateway");
    const server = Bun.serve({
      unix: socketPath,
      // Its type has it for TCP alone, yet silent streams are cut here too.
      ...({ idleTimeout: 0 } as object),
      maxRequestBodySize: maxBodyBytes,
      fetch: (request): Response | Promise<Response> => {
        const token = tokenOf(request.headers);
        const session = sessions.get(token.split(".", 1)[0] ?? "");
        if (!session || !timingSafeEqual(session.digest, digestOf(token)))
          return refusal(401, "the token is not that of a run in progress", "unauthorized");
        return session.answer(request);
      },
    });
    return { server, folder, socketPath };
  }

  /** Lets one run call one model, within its limits. */
  function openSession(options: SessionOptions): GatewaySession {
    const { model, limits, onEvent, onNearLimit = () => {}, onFailure } = options;
    listening ??= listen();
    const id = randomBytes(9).toString("base64url");
    const token = `${id}.${randomBytes(32).toString("base64url")}`;
    const near = new Set<string>();
    const budget = createBudget(limits, {
      onEvent,
      onNearLimit(limit, name, share) {
        near.add(name);
        onNearLimit(limit, share);
      },
    });
    const closing = new AbortController();
    const inTheAir = new Set<Promise<void>>();
    let failures = 0;
    let failure: AgentFailure | null = null;
    let priceMissed = false;

    function fail(why: AgentFailure): void {
      if (failure) return;
      failure = why;
      onFailure(why);
    }

    function failed(detail: string, retryAfter: string | null): void {
      failures++;
      onEvent({ type: "error", where: "model", message: `${model.provider} ${detail}`, url: null, retryable: true });
      if (failures < maxFailures) return;
      const retryAfterMs = readRetryAfter(retryAfter, now());
      const text = `${model.provider} ${detail}${failures > 1 ? ` (${failures} failures in a row)` : ""}`;
      fail(
        new AgentFailure("infrastructure", text, {
          retryable: true,
          ...(retryAfterMs !== null && { retryAfterMs }),
        }),
      );
    }

    /** Ends a run whose money is bounded, where nobody can tell what its calls cost; answers with whether it is such a run. */
    function mustKnow(why: string, remedy: string): boolean {
      if (!options.mustHavePrice) return false;
      const text = `${why}, so the limit of money cannot hold; ${remedy}, or take the limit away`;
      fail(new AgentFailure("budget", text));
      return true;
    }

    function missPrice(name: string): void {
      if (priceMissed) return;
      priceMissed = true;
      if (mustKnow(`nobody says what ${name} costs`, "state its price in EVALD_MODEL_PRICES")) return;
      const cannot = limits.costUsd === null ? "" : `, so its budget of $${limits.costUsd} cannot hold`;
      const text = `Nobody says what ${name} costs${cannot}; its tokens are counted, up to ${limits.tokens}. EVALD_MODEL_PRICES states prices.`;
      onEvent({ type: "message", text });
    }

    function settle(outcome: Outcome): void {
      if (outcome.kind === "refused") {
        const { status, detail, retryAfter } = outcome;
        if (status === null) failed(`did not answer: ${detail}`, null);
        else if (status === 402) {
          const why = `${model.provider} wants to be paid first (402): ${detail}; top up its account, or use another key`;
          fail(new AgentFailure("credentials", why));
        } else if (status === 404) {
          const why = `${model.provider} does not know it (404): ${detail}; ${model.name} must be a model of ${model.baseUrl}, an address with the version in its path where the provider has one`;
          fail(new AgentFailure("infrastructure", why));
        } else if (isRefusedKey(model, status, detail)) {
          const remedy = `mend ${providerVariables[model.provider].key}, or the organisation's own key by evald model set-key ${model.provider}`;
          fail(new AgentFailure("credentials", `${model.provider} refused the key (${status}): ${detail}; ${remedy}`));
        } else if (status < 400 || status === 429 || status >= 500) failed(`answered ${status}: ${detail}`, retryAfter);
        return;
      }
      const { reading, cut, left } = outcome;
      const { usage, whole, error } = reading;
      const name = reading.model ?? model.name;
      const costUsd = usage && whole ? priceOf(usage, reading.model, model) : null;
      const { input: inputTokens = 0, output: outputTokens = 0, cached: cachedTokens, reasoning } = usage ?? {};
      budget.spend(inputTokens + outputTokens, costUsd);
      onEvent({
        type: "usage",
        model: name,
        inputTokens,
        outputTokens,
        cachedTokens,
        reasoningTokens: reasoning,
        costUsd,
      });
      if (!usage || !whole)
        onEvent({
          type: "message",
          text: `A call of ${name} ended without a word on what it used; its cost is not known.`,
        });
      else if (costUsd === null) missPrice(name);
      if (!usage && whole)
        mustKnow(`${name} does not say what a call used`, "use a server that sends usage with its answers");
      const unlike = !usage && reading.model === null;
      const unread = unlike
        ? `what came is no answer of a model; is ${model.baseUrl} its address?`
        : "the answer has no end";
      const trouble = error ?? cut ?? (whole ? null : unread);
      if (trouble === null) failures = 0;
      else if (error !== null || !left) failed(`gave no whole answer: ${trouble.slice(0, 300)}`, null);
    }

    async function answer(request: Request): Promise<Response> {
      const endpoint = request.method === "POST" ? findEndpoint(model.provider, new URL(request.url)) : null;
      if (!endpoint) return refusal(404, `no call of ${model.provider} is at this address`, "not_found");
      const body = await readObject(request);
      if (!body) return refusal(400, "the request must be a JSON object", "bad_request");
      const call = toModelRequest(endpoint, body);
      if (call.model !== model.name)
        return refusal(403, `this run may call ${model.name} and no other model`, "forbidden");
      const hosted = findHosted(call);
      if (hosted) return refusal(403, `a run may not have its provider do this: ${hosted}`, "forbidden");
      if (failure) return refusal(403, `the run has ended: ${failure.detail}`, "run_ended");
      if (closing.signal.aborted) return refusal(401, "the run has ended", "unauthorized");
      if (inTheAir.size >= maxCallsAtOnce)
        return refusal(429, `a run makes up to ${maxCallsAtOnce} calls at once`, "too_many_calls");
      const over = budget.begin();
      if (over) return refusal(402, over, "budget_exhausted");

      const headers: Record<string, string> = {};
      for (const header of passedHeaders) {
        const value = request.headers.get(header);
        if (value !== null) headers[header] = value;
      }
      const settled = Promise.withResolvers<void>();
      inTheAir.add(settled.promise);
      // What it reads is paid before anyone can tell; what it writes ends with the money.
      const bounded = boundOutput(call, Math.max(leastOutput, outputFor(budget.leftUsd(), model)));
      const response = await forward(bounded, model, {
        headers,
        gone: AbortSignal.any([request.signal, closing.signal]),
        silenceMs: options.silenceMs ?? silenceMs,
        drainMs: options.drainMs ?? drainMs,
        onEnd(outcome) {
          inTheAir.delete(settled.promise);
          settled.resolve();
          settle(outcome);
        },
      });
      if (near.size > 0) response.headers.set(nearHeader, [...near].join(","));
      return response;
    }

    sessions.set(id, { digest: digestOf(token), answer });
    if (!hasPrice(model)) missPrice(model.name);
    return {
      token,
      socketPath: listening.socketPath,
      spent: budget.spent,
      warn: (limit) => void near.add(limit),
      async close() {
        sessions.delete(id);
        closing.abort();
        await Promise.all(inTheAir);
      },
    };
  }

  return {
    openSession,
    /** Ends every connection. Close the sessions first. */
    async close(): Promise<void> {
      await listening?.server.stop(true);
      if (listening) rmSync(listening.folder, { recursive: true, force: true });
      listening = undefined;
    },
  };
}

const digestOf = (token: string): Buffer => new Bun.CryptoHasher("sha256").update(token).digest();

const tokenOf = (headers: Headers): string =>
  headers.get("x-api-key") ??
  headers.get("x-goog-api-key") ??
  /^bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ??
  "";

/** Google says 400 where others say 401. */
const isRefusedKey = ({ provider }: ModelAccess, status: number, detail: string): boolean =>
  status === 401 || status === 403 || (provider === "google" && status === 400 && /api key/i.test(detail));

/** The JSON object of a request; null if there is none. What is too large, the server itself refuses with 413. */
async function readObject(request: Request): Promise<Record<string, unknown> | null> {
  try {
    const value: unknown = await request.json();
    return value !== null && typeof value === "object" && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
