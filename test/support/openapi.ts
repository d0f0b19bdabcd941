import { join } from "node:path";
import { testApp } from "./app.ts";
import { operationsFile, operationTypes } from "./operation-types.ts";

export const openApiFile = join(import.meta.dir, "..", "..", "openapi.json");

/** The API description that a service serves. */
export async function servedOpenApi() {
  const service = testApp({ env: { EVALD_BASE_URL: "https://evals.acme.dev" } });
  return (await service.send("GET", "/openapi.json", { headers: { authorization: "" } })).body;
}

type Described = Record<string, Record<string, { responses: Record<string, object>; parameters?: object[] }>>;

/** A description in which each operation has its own copies of shared responses and parameters, in place of references. */
export function withOwnParts<T extends { paths: Described; components: object }>(document: T): T {
  const components = document.components as Record<string, Record<string, object>>;
  const own = (part: object): object => {
    if (!("$ref" in part)) return part;
    const [kind = "", name = ""] = String(part.$ref).split("/").slice(-2);
    return components[kind]?.[name] ?? {};
  };
  const paths = mapValues(document.paths, (methods) =>
    mapValues(methods, ({ parameters, ...operation }) => ({
      ...operation,
      ...(parameters && { parameters: parameters.map(own) }),
      responses: mapValues(operation.responses, own),
    })),
  );
  return { ...document, paths };
}

const mapValues = <T, R>(values: Record<string, T>, change: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));

/** Indented JSON in which a list or object that fits into a line of 1200 characters is written on that line. */
function toText(value: unknown, indent = ""): string {
  const line = JSON.stringify(value);
  if (typeof value !== "object" || value === null || indent.length + line.length <= 1200) return line;
  const inner = `${indent} `;
  const items = Array.isArray(value)
    ? value.map((item) => toText(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${toText(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${inner}${items.join(`,\n${inner}`)}\n${indent}${close}`;
}

if (import.meta.main) {
  const description = await servedOpenApi();
  await Bun.write(openApiFile, `${toText(description)}\n`);
  await Bun.write(operationsFile, await operationTypes(withOwnParts(description)));
  process.exit();
}
