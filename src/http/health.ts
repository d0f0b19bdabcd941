import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { operation } from "./operation.ts";

const Health = Type.Object({ status: Type.String(), detail: Type.Optional(Type.String()) });

/** `findProblem`: why the service isn't ready; null if it is. */
export const healthRoutes = (findProblem: () => Promise<string | null>) =>
  new Elysia({ name: "health" })
    .get("/healthz", () => ({ status: "alive" }), {
      ...operation("System", "healthz", "Check that the process is alive", { 200: Health }, { security: [] }),
    })
    .get(
      "/readyz",
      async ({ set }) => {
        const problem = await findProblem();
        if (problem === null) return { status: "ready" };
        set.status = 503;
        return { status: "not ready", detail: problem };
      },
      operation(
        "System",
        "readyz",
        "Check that the service is ready: the database is writable, the job runner works and no shutdown is in progress",
        { 200: Health, 503: Health },
        { security: [] },
      ),
    );
