import { and, eq, lte, or } from "drizzle-orm";
import { Webhook } from "standardwebhooks";
import { jobs } from "../../src/db/tables/jobs.ts";
import { testApp } from "./app.ts";
import { startReceiver } from "./receiver.ts";

const secretKey = Buffer.alloc(32, 7).toString("base64");

type Options = Parameters<typeof testApp>[0] & { answer?: Parameters<typeof startReceiver>[0] };

/** A service with a clock that only `pass` moves, and a receiver that it may reach. */
export function deliveringApp({ answer, env, ...options }: Options = {}) {
  const receiver = startReceiver(answer);
  let at = Date.UTC(2026, 10, 21, 9, 30);
  const app = testApp({
    ...options,
    env: { EVALD_SECRET_KEY: secretKey, EVALD_ALLOW_PRIVATE: receiver.host, ...env },
    now: () => at,
  });
  const { db, service, send } = app;
  const due = () =>
    db
      .select({ id: jobs.id })
      .from(jobs)
      .where(
        and(
          eq(jobs.pool, "deliveries"),
          or(eq(jobs.state, "running"), and(eq(jobs.state, "queued"), lte(jobs.availableAt, at))),
        ),
      )
      .all().length;

  async function post(path: string, body: unknown = {}) {
    const answer = await send("POST", path, { body });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  return {
    ...app,
    receiver,
    post,
    pass: (ms: number) => {
      at += ms;
    },
    now: () => at,
    /** Adds a webhook to the receiver. */
    addWebhook: (events: string[], more: object = {}) =>
      post("/api/v1/destinations", { kind: "webhook", url: receiver.url, events, ...more }),
    /** The payload of a request with a valid signature. Throws if it has none. */
    verified(secret: string, request: { headers: Record<string, string>; body: string } | undefined) {
      // The library compares the timestamp with the real clock.
      const real = Date.now;
      Date.now = () => at;
      try {
        return new Webhook(secret).verify(request?.body ?? "", request?.headers ?? {});
      } finally {
        Date.now = real;
      }
    },
    /** Runs every delivery that is due, once. */
    async deliver(): Promise<void> {
      const { runner } = service.notifier;
      await runner.start();
      while (due() > 0) await Bun.sleep(1);
      await runner.stop(0);
    },
    deliveriesOf: async (id: string) => (await send("GET", `/api/v1/destinations/${id}/deliveries`)).body,
    /** The newest delivery with its log. */
    async lastOf(id: string) {
      const [{ id: delivery }] = (await send("GET", `/api/v1/destinations/${id}/deliveries`)).body;
      return (await send("GET", `/api/v1/destinations/${id}/deliveries/${delivery}`)).body;
    },
  };
}
