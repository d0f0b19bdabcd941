import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { createApp } from "../../src/app.tsx";

type LoadRoutes = ReturnType<typeof createApp>["loadRoutes"];
type Routes = Awaited<ReturnType<LoadRoutes>>;
type Described = { content?: Record<string, { schema: TSchema }>; headers?: Record<string, unknown> };
type Operation = { method: string; path: RegExp; responses: Record<string, Described> };

/** The description of the first app of the process. All apps have the same routes, apart from their base path. */
let operations: Operation[] | undefined;
const checks = new Map<TSchema, TypeCheck<TSchema>>();

function operationsOf(routes: Routes, basePath: string): Operation[] {
  const all = routes.flatMap(({ method, path, hooks }) => {
    const { responses } = (hooks.detail ?? {}) as { responses?: Operation["responses"] };
    const own = path.slice(basePath.length);
    if (!own.startsWith("/api/") || !responses) return [];
    return [
      { method, path: new RegExp(`^${own.replace(/:\w+/g, "[^/]+")}$`), responses, variables: own.split(":").length },
    ];
  });
  return all.sort((a, b) => a.variables - b.variables);
}

/** Checks a JSON response of the API against its description. Throws if it has another status, schema or headers. */
export async function checkDescribed(
  loadRoutes: LoadRoutes,
  basePath: string,
  {
    method,
    path,
    status,
    headers,
    body,
  }: { method: string; path: string; status: number; headers: Headers; body: unknown },
): Promise<void> {
  operations ??= operationsOf(await loadRoutes(), basePath);
  const own = path.slice(basePath.length).replace(/\/$/, "");
  const operation = operations.find((each) => each.method === method && each.path.test(own));
  if (!operation) return;
  const described = operation.responses[status];
  // Every operation refuses a repeated query key, and a path that no URL can have.
  if (!described && (status === 400 || status === 404)) return;
  const fail = (what: string): never => {
    throw new Error(`${method} ${path} returned ${status}, ${what}`);
  };
  if (!described) fail("which is not described in openapi.json");
  for (const name of Object.keys(described?.headers ?? {})) if (!headers.has(name)) fail(`without the header ${name}`);
  const schema = described?.content?.["application/json"]?.schema;
  if (!schema) return;
  const check = checks.get(schema) ?? TypeCompiler.Compile(schema);
  checks.set(schema, check);
  if (check.Check(body)) return;
  const wrong = check.Errors(body).First();
  fail(`and ${wrong?.path || "the body"}: ${wrong?.message}; got ${JSON.stringify(wrong?.value)?.slice(0, 200)}`);
}
