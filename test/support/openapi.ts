import { join } from "node:path";
import { testApp } from "./app.ts";
import { operationsFile, operationTypes } from "./operation-types.ts";

export const openApiFile = join(import.meta.dir, "..", "..", "openapi.json");

/** The API description that a service serves. */
export async function servedOpenApi() {
  const service = testApp({ env: { EVALD_BASE_URL: "https://evals.acme.dev" } });
  return (await service.send("GET", "/openapi.json", { headers: { authorization: "" } })).body;
}

type Described = Record<string, Record<string, { responses: Record<string, object> }>>;

/** A description in which each operation has its own copies of shared responses, in place of references. */
export function withResponses<T extends { paths: Described; components: object }>(document: T): T {
  const { responses: shared } = document.components as { responses: Record<string, object> };
  const own = (response: object) =>
    "$ref" in response ? (shared[String(response.$ref).split("/").at(-1) ?? ""] ?? {}) : response;
  const paths = mapValues(document.paths, (methods) =>
    mapValues(methods, (operation) => ({ ...operation, responses: mapValues(operation.responses, own) })),
  );
  return { ...document, paths };
}

const mapValues = <T, R>(values: Record<string, T>, change: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));

/** Indented JSON, with short lists of plain values on one line, as Biome formats them. */
function toText(value: object): string {
  const text = `${JSON.stringify(value, null, 1)}\n`;
  return text.replace(
    /\[\n\s+((?:"[^"\\\n]*"|[\w.+-]+)(?:,\n\s+(?:"[^"\\\n]*"|[\w.+-]+))*)\n\s+\]/g,
    (_, items: string) => `[${items.replaceAll(/,\n\s+/g, ", ")}]`,
  );
}

if (import.meta.main) {
  const description = await servedOpenApi();
  await Bun.write(openApiFile, toText(description));
  await Bun.write(operationsFile, await operationTypes(description));
  process.exit();
}
