import type { TSchema } from "@sinclair/typebox";
import type { createApp } from "../../src/app.tsx";

type Routes = Awaited<ReturnType<ReturnType<typeof createApp>["loadRoutes"]>>;
type Schemas = Record<string, TSchema>;
type Paths = Record<string, Record<string, object>>;

/** Whether a route only leads from the address of a form to its page. */
export const isFormAddress = (hooks: unknown): boolean =>
  (hooks as { detail?: { tags?: string[] } }).detail?.tags?.includes("Form address") === true;

/** The API description plus the pages and forms that it leaves out: their paths, with their query parameters. */
export function withPages<T extends { paths: Paths }>(document: T, routes: Routes): T {
  const paths: Paths = { ...document.paths };
  for (const { method, path, hooks } of routes) {
    if (path.startsWith("/api/") || !["GET", "POST"].includes(method) || isFormAddress(hooks)) continue;
    const { properties = {} } = ((hooks as { query?: TSchema }).query ?? {}) as { properties?: Schemas };
    const parameters = Object.entries(properties).map(([name, schema]) => ({ in: "query", name, schema }));
    const place = path.replace(/:(\w+)/g, "{$1}");
    paths[place] = { ...paths[place], [method.toLowerCase()]: { parameters, responses: responsesOf(method) } };
  }
  return { ...document, paths };
}

const error = { content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } } };

/** What a page or a form may respond with. An error is a page, or JSON. */
const responsesOf = (method: string) =>
  Object.fromEntries(
    [200, 303, 304, 400, 401, 403, 404, 429, ...(method === "POST" ? [409, 413] : [])].map((status) => [
      status,
      status < 400 ? {} : error,
    ]),
  );
