import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, type OrgOf, operation } from "../api.ts";
import { badRequest } from "../errors.ts";
import { runUrls } from "../reports/reports.ts";
import type { Requests } from "./requests.ts";
import type { Runs } from "./runs.ts";
import { Run, RunRequest, RunResponse, runExample, runsQuery } from "./schema.ts";

type Parts = { runs: Runs; requests: Requests; baseUrl: () => string };

export const runRoutes = ({ runs, requests, baseUrl }: Parts, orgOf: OrgOf) =>
  new Elysia({ name: "runs" })
    .post(
      "/api/v1/prompts/:promptId/run",
      ({ request, params, body }) => {
        const idempotencyKey = readIdempotencyKey(request.headers);
        const { runIds } = requests.requestEval(orgOf(request), params.promptId, {
          ...body,
          idempotencyKey,
          trigger: "api",
        });
        const runId = runIds[0] as string;
        return { runId, ...runUrls(baseUrl(), runId) };
      },
      {
        parse: "json",
        params: Type.Object({ promptId: Type.String({ description: "uuid of the prompt" }) }),
        body: RunRequest,
        response: { 200: RunResponse, ...errors(400, 404, 409, 413) },
        ...operation("Runs", "runPrompt", "Trigger a run of a prompt", {
          description: "An accepted run is never lost. Follow it at statusUrl.",
          parameters: [
            {
              name: "Idempotency-Key",
              in: "header",
              required: false,
              description:
                "The same key within 24 hours answers with the same run; with another request it is refused.",
              schema: { type: "string", minLength: 1, maxLength: 255 },
            },
          ],
        }),
      },
    )
    .get(
      "/api/v1/runs",
      ({ request, query, set }) => {
        const { promptId, reportStatus, limit = 100, offset } = query;
        const { items, total } = runs.listRuns(
          orgOf(request),
          { promptId, reportStatus },
          { limit, offset: offset ?? 0 },
        );
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object(runsQuery),
        response: { 200: Type.Array(Run), ...errors(400) },
        ...operation("Runs", "listRuns", "List the runs of the organisation, newest first"),
      },
    )
    .get("/api/v1/runs/:runId", ({ request, params }) => runs.getRun(orgOf(request), params.runId), {
      params: Type.Object({ runId: Type.String({ description: "uuid of the run" }) }),
      response: { 200: { ...Run, examples: [runExample] }, ...errors(404) },
      ...operation("Runs", "getRun", "Get the status of a run, and its report once it is completed"),
    });

function readIdempotencyKey(headers: Headers): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw badRequest("Idempotency-Key must be 1 to 255 visible ASCII characters");
  return key;
}
