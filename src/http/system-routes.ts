import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { notFound } from "../errors.ts";
import { operation } from "./operation.ts";

export const openApiJsonPath = "/openapi.json";
/** Clients that were written for another service with the same API look for the document here. */
export const openApiPath = "/api/openapi";
const healthPath = "/healthz";
const readyPath = "/readyz";
const signingKeyPath = "/.well-known/evald-signing-key";

/** Whether a path belongs to a health route, which needs no API key. The router ignores a trailing slash. */
export const isHealthPath = (path: string): boolean =>
  [healthPath, readyPath, signingKeyPath].includes(path.replace(/\/$/, ""));

const OpenApi = Type.Object({}, { additionalProperties: true, description: "An OpenAPI 3.1 document" });

/** The OpenAPI document, without an API key. */
export const openApiRoutes = (openApi: () => Promise<object>) =>
  new Elysia({ name: "openapi" })
    .get(openApiJsonPath, openApi, { detail: { hide: true } })
    .get(
      openApiPath,
      openApi,
      operation("System", "openapi", "Get the OpenAPI document", { 200: OpenApi }, { security: [] }),
    );

type Health = {
  /** The ID of the process. */
  instance: string;
  /** Why the service isn't ready; null if it is. */
  findProblem: () => Promise<string | null>;
  /** What the operator should fix although the service is ready; null: nothing. */
  findWarning: () => string | null;
  /** The public key of its exports; null without EVALD_SECRET_KEY, because exports aren't signed then. */
  signingKey: () => string | null;
  /** The problems that its checks found at their last run. */
  listProblems: () => { check: string; cause: string; state: string }[];
};

/**
 * Returns whether the process is alive, whether it is ready, and the public key of its exports. Anyone may ask, so problems don't name what they are
 * about.
 */
export const healthRoutes = ({ instance, findProblem, findWarning, signingKey, listProblems }: Health) =>
  new Elysia({ name: "health" })
    .get(healthPath, () => ({ status: "alive", instance }))
    .get(signingKeyPath, ({ set }) => {
      const key = signingKey();
      if (key === null) throw notFound("This instance doesn't sign its exports, because EVALD_SECRET_KEY isn't set.");
      set.headers["content-type"] = "text/plain; charset=utf-8";
      return `${key}\n`;
    })
    .get(readyPath, async ({ set }) => {
      const problem = await findProblem();
      const problems = listProblems().map(({ check, cause, state }) => ({ check, cause, state }));
      if (problem !== null) {
        set.status = 503;
        return { status: "not ready", detail: problem, ...(problems.length > 0 && { problems }) };
      }
      const warning = findWarning() ?? (problems.length > 0 ? toWarning(problems) : null);
      return {
        status: "ready",
        ...(warning !== null && { detail: warning }),
        ...(problems.length > 0 && { problems }),
      };
    });

const toWarning = (problems: { check: string }[]): string =>
  `evald doctor says what to do about: ${[...new Set(problems.map(({ check }) => check))].join(", ")}`;
