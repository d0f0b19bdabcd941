import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import { runUrls } from "../reports/reports.ts";
import { PathId } from "../schema.ts";
import type { Requests } from "./requests.ts";
import type { Runs } from "./runs.ts";
import { Run, RunRequest, RunResponse, runsQuery } from "./schema.ts";

type Parts = { runs: Runs; requests: Requests; baseUrl: () => string };

const IdempotencyKey = Type.String({
  pattern: "^[\\x21-\\x7e]{1,255}$",
  description:
    "1 to 255 visible ASCII characters. The same key within 24 hours answers with the same run; with another request it is refused.",
});

export const runRoutes = ({ runs, requests, baseUrl }: Parts, orgOf: OrgOf) =>
  new Elysia({ name: "runs" })
    .post(
      "/api/v1/prompts/:promptId/run",
      ({ request, params, headers, body }) => {
        const { runIds } = requests.requestEval(orgOf(request), params.promptId, {
          ...body,
          idempotencyKey: headers["idempotency-key"],
          trigger: "api",
        });
        const runId = runIds[0] as string;
        return { runId, ...runUrls(baseUrl(), runId) };
      },
      {
        headers: Type.Object({ "idempotency-key": Type.Optional(IdempotencyKey) }),
        params: Type.Object({ promptId: PathId("uuid of the prompt") }),
        ...jsonBody(RunRequest),
        ...operation(
          "Runs",
          "runPrompt",
          "Trigger a run of a prompt",
          { 200: RunResponse, ...errors(400, 404, 409, 413) },
          {
            description: "An accepted run is never lost. Follow it at statusUrl.",
          },
        ),
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
        ...operation("Runs", "listRuns", "List the runs of the organisation, newest first", {
          200: listOf(Run, "Runs, newest first"),
          ...errors(400),
        }),
      },
    )
    .get("/api/v1/runs/:runId", ({ request, params }) => runs.getRun(orgOf(request), params.runId), {
      params: Type.Object({ runId: PathId("uuid of the run") }),
      ...operation("Runs", "getRun", "Get the status of a run, and its report once it is completed", {
        200: Run,
        ...errors(404),
      }),
    });
