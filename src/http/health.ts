import { Elysia } from "elysia";

/** Whether the process is alive, and whether it is ready. `findProblem`: why the service isn't ready; null if it is. */
export const healthRoutes = (findProblem: () => Promise<string | null>) =>
  new Elysia({ name: "health" })
    .get("/healthz", () => ({ status: "alive" }))
    .get("/readyz", async ({ set }) => {
      const problem = await findProblem();
      if (problem === null) return { status: "ready" };
      set.status = 503;
      return { status: "not ready", detail: problem };
    });
