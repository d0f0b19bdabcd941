import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { operation } from "./operation.ts";

/** Where clients of other services with this API expect the document. */
export const openApiPath = "/api/openapi";

const OpenApi = Type.Object({}, { additionalProperties: true, description: "An OpenAPI 3.1 document" });

/** The OpenAPI document, without an API key. */
export const openApiRoutes = (openApi: () => object) =>
  new Elysia({ name: "openapi" })
    .get("/openapi.json", openApi, { detail: { hide: true } })
    .get(
      openApiPath,
      openApi,
      operation("System", "openapi", "Get the OpenAPI document", { 200: OpenApi }, { security: [] }),
    );

/** Whether the process is alive, and whether it is ready. `findProblem`: why the service isn't ready; null if it is. `findWarning`: what to mend although it is. */
export const healthRoutes = (findProblem: () => Promise<string | null>, findWarning: () => string | null) =>
  new Elysia({ name: "health" })
    .get("/healthz", () => ({ status: "alive" }))
    .get("/readyz", async ({ set }) => {
      const problem = await findProblem();
      const warning = findWarning();
      if (problem === null) return { status: "ready", ...(warning !== null && { detail: warning }) };
      set.status = 503;
      return { status: "not ready", detail: problem };
    });
