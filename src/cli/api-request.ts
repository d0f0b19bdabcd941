import { Argument, type Command, InvalidArgumentError } from "commander";
import { badRequest, unavailable } from "../errors.ts";
import type { Api } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { readTextFile } from "./files.ts";
import { jqOption } from "./jq.ts";
import { exitOf, parsePair, print, sayFailure, toFailure, toJson } from "./terminal.ts";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** `rawField`: values that are sent as text. `field`: values that are parsed as JSON if they are valid JSON. */
type RequestFields = ServiceAddress & {
  field?: Record<string, string>;
  rawField?: Record<string, string>;
  input?: string;
  paginate?: boolean;
};

/** Items per page with `--paginate`. */
const pageSize = 1000;

/** Adds `api`: sends any request to the REST API. */
export function addApiRequest(program: Command, useApi: UseApi): void {
  addServiceOptions(
    program
      .command("api")
      .description("Send a request to the REST API and print the response as JSON")
      .addArgument(new Argument("<method>", "HTTP method").choices(methods).argParser(toMethod))
      .argument("<path>", "Path such as /prompts, with or without /api/v1")
      .option(
        "-f, --raw-field <name=value>",
        "Field of the query of a GET, else of the body, as text (repeatable)",
        parsePair,
      )
      .option(
        "-F, --field <name=value>",
        "Field that may be a number, true, false, null, [...] or {...}, or @FILE for the text of a file (repeatable)",
        parsePair,
      )
      .option("--input <file>", "File with the body, - for stdin")
      .option("--paginate", "Get all pages of a list")
      .addOption(jqOption()),
  )
    .addHelpText(
      "after",
      "\nThe operations are in the API reference of the service, at /docs/api.\n\nExamples:\n  evald api GET /prompts --paginate --jq '.[].title'\n  evald api PATCH /prompts/0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11 -f status=paused",
    )
    .action(async (method: string, path: string, { url, org, ...fields }: RequestFields) => {
      try {
        await useApi({ url, org }, (api) => sendRequest(api, method, path, fields));
      } catch (error) {
        // Errors are JSON even without `--json`, because this command always prints JSON.
        const json = true;
        sayFailure(toFailure(error), json);
        process.exitCode = exitOf(error);
      }
    });
}

function toMethod(word: string): string {
  const method = methods.find((each) => each === word.toUpperCase());
  if (method === undefined) throw new InvalidArgumentError(`Must be one of ${methods.join(", ")}.`);
  return method;
}

async function sendRequest(
  api: Api,
  method: string,
  path: string,
  request: Omit<RequestFields, "url" | "org">,
): Promise<void> {
  const { field = {}, rawField = {}, input, paginate } = request;
  const template = toPath(path);
  const fields = {
    ...Object.fromEntries(Object.entries(field).map(([name, text]) => [name, toValue(text)])),
    ...rawField,
  };
  const hasFields = Object.keys(fields).length > 0;
  if (input !== undefined && hasFields) throw badRequest("Pass the body as --input or as fields, not both.");
  if (paginate && method !== "GET") throw badRequest("--paginate is only for GET.");
  if (input !== undefined && method === "GET")
    throw badRequest("A GET request has no body. Pass --field for its query.");
  if (paginate) return print(toJson(await getAllPages(api, template, fields), 2));
  const fieldsOrNone = hasFields ? fields : undefined;
  const body = input === undefined ? fieldsOrNone : await readBody(input);
  const response = await api.send(method, template, method === "GET" ? { query: fields } : { body });
  if (!response.headers.get("content-type")?.includes("json")) return await writeAll(response);
  print(toJson(await response.json(), 2));
}

/** The path below `/api/v1`, with its query. Throws bad_request for a URL, because --url chooses the service. */
function toPath(path: string): string {
  if (/^https?:/i.test(path)) throw badRequest("Pass a path, such as /prompts. --url chooses the service.");
  return `/${path.replace(/^\/*(api\/v1(\/|$))?/, "")}`;
}

/** A field of the body or query. Throws bad_request for a file that can't be read. */
function toValue(text: string): unknown {
  if (text.startsWith("@")) return readTextFile(text.slice(1));
  const mayBeJson = /^(-?\d|true$|false$|null$|\[|\{)/.test(text);
  if (!mayBeJson) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function readBody(file: string): Promise<unknown> {
  const text = file === "-" ? await Bun.stdin.text() : readTextFile(file);
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`${file === "-" ? "stdin" : file} is not JSON.`);
  }
}

/** The items of all pages. Throws bad_request if the response isn't a list. */
async function getAllPages(api: Api, path: string, query: Record<string, unknown>): Promise<unknown[]> {
  const items: unknown[] = [];
  for (let total = 1; items.length < total; ) {
    const response = await api.send("GET", path, { query: { limit: pageSize, ...query, offset: items.length } });
    const page: unknown = await response.json();
    if (!Array.isArray(page)) throw badRequest(`GET ${path} returns no list. Leave out --paginate.`);
    if (page.length === 0) break;
    items.push(...page);
    total = Number(response.headers.get("x-total-count") ?? items.length);
  }
  return items;
}

/** Writes a response that isn't JSON to stdout, as it comes. */
async function writeAll(response: Response): Promise<void> {
  try {
    for await (const piece of response.body ?? []) process.stdout.write(piece);
  } catch (error) {
    throw unavailable(`Lost the connection: ${error instanceof Error ? error.message : error}.`);
  }
}
