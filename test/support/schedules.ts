import { and, eq, isNull } from "drizzle-orm";
import { updateOrg } from "../../src/auth/orgs.ts";
import type { OrgId } from "../../src/context.ts";
import { runs } from "../../src/db/tables/runs.ts";
import { cancelRun } from "../../src/runs/endings.ts";
import { createService, type Service } from "../../src/service.ts";
import { instantAgent, testApp } from "./app.ts";

/** A service with a settable clock, whose first organization is in a time zone. */
export function scheduledApp(
  start: string,
  { zone = "UTC", dataDir, env }: { zone?: string; dataDir?: string; env?: Record<string, string> } = {},
) {
  const clock = { at: Date.parse(start) };
  const t = testApp({ now: () => clock.at, dataDir, ...(env && { env }) });
  updateOrg(t.service.ctx, t.a.org, { timeZone: zone });
  let service: Service = t.service;

  return {
    ...t,
    clock,
    /** The current service. */
    current: () => service,
    /** A new process takes over the same data. */
    async restart(): Promise<void> {
      await service.scheduler.stop();
      service = createService({ ...t.service.ctx, agents: { explorer: instantAgent } });
    },
    async tickAt(at: string | number): Promise<number | null> {
      clock.at = typeof at === "number" ? at : Date.parse(at);
      return await service.scheduler.tick();
    },
    create: async (body: Record<string, unknown>): Promise<string> =>
      (await t.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/", ...body } })).body.id,
    change: (id: string, body: unknown) => t.send("PATCH", `/api/v1/prompts/${id}`, { body }),
    nextRuns: async (id: string): Promise<string[] | null> =>
      (await t.send("GET", `/api/v1/prompts/${id}`)).body.nextRunsAt,
    /** Time and outcome of every scheduled evaluation so far, oldest first. */
    outcomes: async (id: string): Promise<string[]> =>
      (await t.send("GET", `/api/v1/prompts/${id}/scheduled-evaluations?limit=1000`)).body
        .map(
          ({ scheduledAt, outcome }: { scheduledAt: string; outcome: string }) =>
            `${scheduledAt.slice(0, 16)} ${outcome}`,
        )
        .reverse(),
    /** Ends the unfinished runs of a prompt. */
    async finish(id: string): Promise<void> {
      const unfinished = and(eq(runs.promptId, id), isNull(runs.completedAt));
      const open = t.db.select({ id: runs.id, orgId: runs.orgId }).from(runs).where(unfinished).all();
      await Promise.all(open.map((run) => cancelRun(t.service.ctx, run.orgId as OrgId, run.id, "the test")));
    },
  };
}
