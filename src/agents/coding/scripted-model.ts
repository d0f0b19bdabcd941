import { type Fields, list, object, text } from "./fields.ts";
import { formats, type Said } from "./model-formats.ts";

/** The actions of a test session, in order; see `toCall`. */
const trialSteps = ["command", "failing command", "page", "file"] as const;
/** `skill` reads the skill acme-guide. The MCP tools are called lookup, of the servers acme-remote and acme-local. */
type TrialStep = (typeof trialSteps)[number] | "skill" | "first MCP tool" | "second MCP tool";

type Offered = { name: string; isCustom: boolean; schema: Fields };
type ToolCall = NonNullable<Said["toolCalls"]>[number];

/** Tokens of every answer. */
export const usage = { input: 1000, cached: 400, output: 50, reasoning: 5 };
const file = { path: "/workspace/hello.txt", content: "hi there" };
/** Agents also request titles and the like, some of them as JSON. */
const sideAnswer = '{"title":"A trial"}';

/**
 * Serves a model on loopback that performs the steps of a test session with any tools that the agent offers, over the
 * protocols of all providers. `pageUrl`: the page that it reads.
 */
export function serveScriptedModel(pageUrl: string, steps: readonly TrialStep[] = trialSteps) {
  let calls = 0;
  const callsOf = new Map<string, number>();

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const format = formats.find(({ path }) => path.test(pathname));
    if (!format || request.method !== "POST") return new Response("not found", { status: 404 });
    const body = await request.json();
    const model = format.model(body, pathname);
    const nth = ++calls;
    callsOf.set(model, (callsOf.get(model) ?? 0) + 1);
    const said = (): Omit<Said, "model"> => {
      if (!format.offersTools(body)) return { text: sideAnswer, usage };
      const step = steps[format.toolResults(body)];
      if (!step) return { text: "Done: all steps of the trial were made.", usage };
      const call = { id: `call_${nth}`, ...toCall(step, offeredIn(body), pageUrl) };
      return { reasoning: `The next step is a ${step}.`, text: `Next: ${step}.`, toolCalls: [call], usage };
    };
    const { stream, whole } = format.answer({ model, ...said() }, body);
    if (!format.streams(body, pathname)) return Response.json(whole);
    return new Response(stream.join(""), { headers: { "content-type": "text/event-stream" } });
  }

  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: answer });
  return {
    url: `http://127.0.0.1:${server.port}`,
    /** Number of answers by model name. */
    callsOf: (model: string): number => callsOf.get(model) ?? 0,
    stop: () => server.stop(true),
  };
}

/** All tools in a request, for any protocol. */
function offeredIn(body: Fields): Offered[] {
  const added = list(body.input)
    .map(object)
    .filter(({ type }) => type === "additional_tools");
  const flat = (tools: unknown): Offered[] =>
    list(tools)
      .map(object)
      .flatMap((tool) => {
        if (tool.type === "namespace") return flat(tool.tools);
        const declared = tool.functionDeclarations ?? tool.function_declarations;
        if (declared) return flat(declared);
        const own = object(tool.function ?? tool);
        const schema = object(own.parameters ?? own.input_schema ?? own.parametersJsonSchema);
        return [{ name: text(own.name), isCustom: tool.type === "custom", schema }];
      });
  return [...flat(body.tools), ...added.flatMap(({ tools }) => flat(tools))];
}

/** The call for a step. Without a tool of their own, pages are fetched and files are written by a command. */
function toCall(step: TrialStep, offered: Offered[], pageUrl: string): Omit<ToolCall, "id"> {
  if (step === "command") return toCommand("echo hello", offered);
  if (step === "failing command") return toCommand("echo failed >&2; exit 3", offered);
  if (step === "skill") {
    const tool = offered.find(({ name, schema }) => /^(activate_)?skill$/i.test(name) && has(schema, /^(skill|name)$/));
    return tool
      ? filled(tool, [[/^(skill|name)$/, "acme-guide"]])
      : toCommand("cat .agents/skills/acme-guide/SKILL.md", offered);
  }
  if (step === "first MCP tool" || step === "second MCP tool") {
    const server = step === "first MCP tool" ? "remote" : "local";
    const name = new RegExp(`acme[-_]${server}.*lookup`);
    const tool = offered.find((each) => name.test(each.name));
    if (tool) return filled(tool, [[/^name$/, "acme"]]);
    const caller = offered.find((each) => each.name === "tool_call");
    if (caller)
      return { name: caller.name, input: { name: `mcp__acme-${server}__lookup`, arguments: { name: "acme" } } };
    const script = offered.find(isScript);
    if (script) return toScript(script, `await tools.mcp__acme_${server}__lookup({name: "acme"})`);
    return toCommand("echo no such tool", offered);
  }
  if (step === "page") {
    const tool = offered.find(({ name, schema }) => /fetch/i.test(name) && has(schema, /^(url|prompt)$/));
    return tool ? filled(tool, [[/^(url|prompt)$/, pageUrl]]) : toCommand(`curl -sS ${pageUrl}`, offered);
  }
  const patch = `*** Begin Patch\n*** Add File: hello.txt\n+${file.content}\n*** End Patch\n`;
  const [path, content] = [/^(file_?path|path)$/i, /^(content|file_text|text)$/i];
  const writer = offered.find(
    ({ name, schema }) => /^(write|create)(_file)?$/i.test(name) && has(schema, path) && has(schema, content),
  );
  if (writer)
    return filled(writer, [
      [path, file.path],
      [content, file.content],
    ]);
  const patcher = offered.find(({ name }) => name === "apply_patch");
  if (patcher?.isCustom) return { name: patcher.name, input: {}, custom: patch };
  if (patcher) return filled(patcher, [[/^(input|patch)$/, patch]]);
  const script = offered.find(isScript);
  if (script) return toScript(script, `await tools.apply_patch(${JSON.stringify(patch)})`);
  return toCommand(`echo '${file.content}' > hello.txt`, offered);
}

function toCommand(command: string, offered: Offered[]): Omit<ToolCall, "id"> {
  const shell = offered.find(
    ({ name, schema }) =>
      /^(bash|shell|exec_command|execute_command|run_command|run_shell_command)$/i.test(name) &&
      has(schema, /^(command|cmd)$/),
  );
  if (shell) return filled(shell, [[/^(command|cmd)$/, command]]);
  const script = offered.find(isScript);
  if (script) return toScript(script, `await tools.exec_command({cmd: ${JSON.stringify(command)}})`);
  return { name: offered[0]?.name ?? "bash", input: { command } };
}

/** Codex lets some models call its tools only in JavaScript. */
const isScript = ({ name, isCustom }: Offered) => isCustom && name === "exec";
const toScript = ({ name }: Offered, call: string) => ({
  name,
  input: {},
  custom: `text(JSON.stringify(${call}))`,
});

const has = ({ properties }: Fields, name: RegExp): boolean =>
  Object.keys(object(properties)).some((key) => name.test(key));

/** A call with the given values, and arbitrary values for other required fields. */
function filled({ name, schema }: Offered, values: [RegExp, string][]): Omit<ToolCall, "id"> {
  const properties = object(schema.properties);
  const known = values.flatMap(([pattern, value]) => {
    const key = Object.keys(properties).find((each) => pattern.test(each));
    return key === undefined ? [] : [[key, value] as const];
  });
  const required = list(schema.required).map((key) => [String(key), anyOf(object(properties[String(key)]))] as const);
  return { name, input: Object.fromEntries([...required, ...known]) };
}

function anyOf({ type, enum: values }: Fields): unknown {
  if (Array.isArray(values) && values.length > 0) return values[0];
  const kind = Array.isArray(type) ? type[0] : type;
  if (kind === "boolean") return false;
  if (kind === "number" || kind === "integer") return 1;
  return kind === "array" ? [] : kind === "object" ? {} : "trial";
}
