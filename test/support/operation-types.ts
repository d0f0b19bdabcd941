import { join } from "node:path";

const source = join(import.meta.dir, "..", "..", "src");
export const operationsFile = join(source, "cli", "operations.ts");

type Schema = { $ref?: string; type?: string | string[]; const?: unknown; enum?: unknown[]; items?: Schema };
type Content = { content?: Record<string, { schema: Schema }> };
type Parameter = { name: string; in: string; required?: boolean; schema: Schema };
type Operation = { parameters?: Parameter[]; requestBody?: Content; responses: Record<string, Content> };
export type Description = {
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
};

/** The source of the types of the CLI's client: the query, the body and the result of each operation below /api/v1. */
export async function operationTypes({ paths, components }: Description): Promise<string> {
  const files = await filesOfTypes();
  const named = new Set<string>();
  const toType = (schema: Schema | undefined): string => {
    if (schema?.items) return `${toType(schema.items)}[]`;
    const name = schema?.$ref?.split("/").at(-1) ?? "";
    if (!files.has(name)) return "unknown";
    named.add(name);
    return name;
  };
  const served = Object.entries(paths).filter(([path]) => path.startsWith("/api/v1/"));
  const operations = served.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const fields = [
        ...toQuery(operation.parameters ?? [], components?.schemas ?? {}),
        ...toBody(operation.requestBody, toType),
        `result: ${toType(jsonOf(Object.values(operation.responses)[0]))}`,
      ];
      return `  "${method.toUpperCase()} ${path.replace("/api/v1", "")}": { ${fields.join("; ")} };`;
    }),
  );
  const modules = Map.groupBy(
    [...named].sort((a, b) => a.localeCompare(b)),
    (name) => files.get(name) ?? "",
  );
  const imports = [...modules.keys()]
    .sort()
    .map((file) => `import type { ${modules.get(file)?.join(", ")} } from "../${file}";`);
  return [
    "// Generated from the OpenAPI description by `bun run openapi`.",
    "// biome-ignore-all format: one line an operation",
    ...imports,
    "",
    "/** The operations of the REST API: the query, the body and the result of each. */",
    "export type Operations = {",
    ...operations,
    "};\n",
  ].join("\n");
}

/** The file of each type of a schema, by its name, relative to the sources. */
async function filesOfTypes(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for await (const file of new Bun.Glob("*/*.ts").scan(source)) {
    const text = await Bun.file(join(source, file)).text();
    for (const [, name = ""] of text.matchAll(/^export type (\w+) = Static</gm)) files.set(name, file);
  }
  return files;
}

const jsonOf = (message: Content | undefined): Schema | undefined => message?.content?.["application/json"]?.schema;

function toQuery(parameters: Parameter[], schemas: Record<string, Schema>): string[] {
  const own = (schema: Schema) => schemas[schema.$ref?.split("/").at(-1) ?? ""] ?? schema;
  const fields = parameters
    .filter((parameter) => parameter.in === "query")
    .map(({ name, required, schema }) => `${name}${required ? "" : "?"}: ${toValue(own(schema))}`);
  return fields.length === 0 ? [] : [`query: { ${fields.join("; ")} }`];
}

/** Bodies other than JSON are sent as a Blob, which has their type. */
const toBody = (body: Content | undefined, toType: (schema: Schema | undefined) => string): string[] =>
  body === undefined ? [] : [`body: ${jsonOf(body) ? toType(jsonOf(body)) : "Blob"}`];

function toValue({ const: constant, enum: values, type }: Schema): string {
  const options = values ?? (constant === undefined ? [] : [constant]);
  if (options.length > 0) return options.map((option) => JSON.stringify(option)).join(" | ");
  const types = [type ?? "string"].flat().filter((each) => each !== "null");
  return types.map((each) => (each === "integer" ? "number" : each)).join(" | ");
}
