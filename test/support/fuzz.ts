import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { type ApiDocument, createFuzzer } from "./fuzz-requests.ts";
import { withOwnParts } from "./openapi.ts";
import { withPages } from "./page-routes.ts";
import { signedIn } from "./people.ts";
import { idsOf } from "./probes.ts";
import { tenants } from "./tenants.ts";

export type FuzzResult = { requests: number; statuses: Record<string, number>; checked: number; wrong: string[] };

/** How long a response may take, in milliseconds. */
const maxMs = 10_000;

/** Sends `count` requests that are derived from the API description, and checks every response against it. The same seed sends the same requests. */
export async function fuzz({ seed, count }: { seed: number; count: number }): Promise<FuzzResult> {
  const world = tenants();
  try {
    await world.furnish(world.as(world.a));
    await world.goOn(world.as(world.a));
    return await attack(world, seed, count);
  } finally {
    await world.stop();
  }
}

async function attack(world: ReturnType<typeof tenants>, seed: number, count: number): Promise<FuzzResult> {
  const { app, a, b, baseUrl } = world;
  const api: ApiDocument = (await world.send("GET", "/openapi.json", { headers: { authorization: "" } })).body;
  const document = withPages(withOwnParts(api), await app.loadRoutes());
  const cookie = (await signedIn(world)).cookie();
  const ids = idsOf(world, a.org, 20);
  // The key of the requests is not revoked.
  ids.keyId = ids.keyId?.slice(0, 1) ?? [];
  await world.service.runner.start();
  const validate = validators(document);
  const next = createFuzzer({ seed, document, ids, baseUrl, keys: [a.key, b.key], cookie });

  const result: FuzzResult = { requests: 0, statuses: {}, checked: 0, wrong: [] };
  while (result.requests < count) {
    const { path, method, operation, request } = next();
    result.requests++;
    const body = request.body === null ? "" : (await request.clone().text()).slice(0, 300);
    const name = `#${result.requests} ${request.method} ${request.url.replace(baseUrl, "").slice(0, 300)} ${body}`;
    const late = Bun.sleep(maxMs).then(() => null);
    const response = await Promise.race([Promise.resolve(app.handle(request)), late]);
    if (response === null) {
      result.wrong.push(`no response: ${name}`);
      continue;
    }
    const { status, headers } = response;
    result.statuses[status] = (result.statuses[status] ?? 0) + 1;
    const type = headers.get("content-type")?.split(";")[0] ?? "";
    if (type === "text/event-stream") await response.body?.cancel();
    const bytes = type === "text/event-stream" ? new Uint8Array() : await response.bytes();
    const isGzip = headers.get("content-encoding") === "gzip" && bytes.length > 0;
    const text = new TextDecoder().decode(isGzip ? Bun.gunzipSync(bytes) : bytes);
    if (status >= 500) result.wrong.push(`${status}: ${name}`);
    const described = operation.responses[status];
    if (Object.keys(operation.responses).length === 0) continue;
    if (!described) result.wrong.push(`status ${status} is not described: ${name}`);
    else if (type === "application/json" && described.content) {
      const problem = validate(path, method, status, type, text);
      if (problem) result.wrong.push(`${problem}: ${name}`);
      result.checked++;
    }
  }
  return result;
}

/** Checks bodies against the schemas of the document. Returns what is wrong. */
function validators(document: ApiDocument) {
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateSchema: false });
  addFormats(ajv);
  ajv.addSchema(document, "api");
  const compiled = new Map<string, ReturnType<typeof ajv.compile> | null>();
  const pointer = (...names: string[]) =>
    names.map((name) => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  return (path: string, method: string, status: number, type: string, text: string): string | null => {
    const content = document.paths[path]?.[method]?.responses[status]?.content ?? {};
    if (!content[type]?.schema) return `${type} is not described for ${status}`;
    const place = pointer("paths", path, method, "responses", String(status), "content", type, "schema");
    const check = compiled.get(place) ?? ajv.compile({ $ref: `api#/${place}` });
    compiled.set(place, check);
    try {
      return check(JSON.parse(text)) ? null : `the body doesn't match its schema: ${ajv.errorsText(check.errors)}`;
    } catch (error) {
      return `the body is not JSON: ${error}`;
    }
  };
}

if (import.meta.main) {
  const argument = (name: string, byDefault: number) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? byDefault : Number(process.argv[at + 1]);
  };
  const [seed, count] = [argument("seed", Date.now() % 1_000_000_007), argument("count", 100_000)];
  const { wrong, ...counts } = await fuzz({ seed, count });
  console.log(JSON.stringify({ seed, ...counts }));
  for (const each of wrong) console.log(each);
  process.exit(wrong.length === 0 ? 0 : 1);
}
