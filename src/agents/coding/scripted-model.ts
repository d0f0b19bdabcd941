import { type Fields, list, object, text } from "../fields.ts";
import {
  contentType,
  readScriptedRequest,
  type ScriptedAnswer,
  type ScriptedRequest,
  type ScriptedToolCall,
} from "./model-formats.ts";

/** The steps of a trial, a session that tests an agent, in order; see `toCall`. */
const trialSteps = ["command", "failing command", "page", "file"] as const;
/** `skill` reads the skill acme-guide. The MCP steps call the tool lookup of the servers acme-remote and acme-local. */
export type TrialStep = (typeof trialSteps)[number] | "skill" | "first MCP tool" | "second MCP tool";

type ToolCall = Omit<ScriptedToolCall, "id">;
type Tool = { name: string; isCustom: boolean; schema: Fields };

/** Tokens of every answer. */
export const usage = { input: 1000, cached: 400, output: 50, reasoning: 5 };
const file = { path: "/workspace/hello.txt", content: "hi there" };
/** The answer after the last step. */
export const finalAnswer = "Done: all steps of the trial were made.";
/** The answer to requests for titles and the like, some of which must be JSON. */
const titleAnswer = '{"title":"A trial"}';

/** A request that the scripted model got. `hasTask`: whether it contains the page of the task. `call`: the tool that it called for a step. */
export type TrialRequest = {
  path: string;
  isKnownPath: boolean;
  hasTask: boolean;
  toolNames: string[];
  call: { step: TrialStep; tool: string } | null;
};

const maxRequests = 200;

/**
 * Serves a model on loopback that performs the steps of a trial with any tools that the agent offers, over the
 * protocols of all providers. `pageUrl`: the page that it reads.
 */
export function serveScriptedModel(pageUrl: string, steps: readonly TrialStep[] = trialSteps) {
  const callCounts = new Map<string, number>();
  const requests: TrialRequest[] = [];
  let nextId = 0;

  async function respond(request: Request): Promise<Response> {
    const modelRequest = await readScriptedRequest(request);
    if (!modelRequest) {
      const { pathname: path } = new URL(request.url);
      log({ path, isKnownPath: false, hasTask: false, toolNames: [], call: null });
      return new Response("not found", { status: 404 });
    }
    const { model, encode, body, path } = modelRequest;
    callCounts.set(model, (callCounts.get(model) ?? 0) + 1);
    const { step, ...answer } = toAnswer(modelRequest, steps, pageUrl, `call_${++nextId}`);
    const [call] = answer.toolCalls ?? [];
    log({
      path,
      isKnownPath: true,
      hasTask: JSON.stringify(body).includes(pageUrl),
      toolNames: listTools(body).map(({ name }) => name),
      call: step && call ? { step, tool: call.name } : null,
    });
    return new Response(encode(answer).join(""), { headers: { "content-type": contentType(modelRequest) } });
  }

  const log = (entry: TrialRequest) => {
    if (requests.length < maxRequests) requests.push(entry);
  };
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: respond });
  return {
    url: `http://127.0.0.1:${server.port}`,
    /** Number of answers by model name. */
    callCount: (model: string): number => callCounts.get(model) ?? 0,
    /** The first requests, oldest first. */
    requests: (): readonly TrialRequest[] => requests,
    stop: () => server.stop(true),
  };
}

/** The call for the next step of the conversation, or its end. */
function toAnswer(
  { body, offersTools, toolResultCount }: ScriptedRequest,
  steps: readonly TrialStep[],
  pageUrl: string,
  id: string,
): Omit<ScriptedAnswer, "model"> & { step?: TrialStep } {
  if (!offersTools) return { text: titleAnswer, usage };
  const isSecondTry = toolResultCount === steps.length && steps.at(-1) === "file" && asksForRelativePath(body);
  const step = isSecondTry ? "file" : steps[toolResultCount];
  if (!step) return { text: finalAnswer, usage };
  const tools = listTools(body);
  const toolCalls = [{ id, ...(isSecondTry ? toFileCall(tools, "hello.txt") : toCall(step, tools, pageUrl)) }];
  return { step, reasoning: `The next step is a ${step}.`, text: `Next: ${step}.`, toolCalls, usage };
}

/** Whether the last result says that the path of a file must be relative. */
const asksForRelativePath = ({ messages, input, contents }: Fields): boolean =>
  /\b(must|should) be (a )?relative\b|\brelative paths? only\b/i.test(
    JSON.stringify(list(messages ?? input ?? contents).at(-1) ?? ""),
  );

/** All tools in a request, for any protocol. */
function listTools(body: Fields): Tool[] {
  const additional = list(body.input)
    .map(object)
    .filter(({ type }) => type === "additional_tools");
  return [body, ...additional].flatMap(({ tools }) => flattenTools(tools));
}

const flattenTools = (tools: unknown): Tool[] =>
  list(tools)
    .map(object)
    .flatMap((tool) => {
      const group =
        tool.type === "namespace" ? list(tool.tools) : (tool.functionDeclarations ?? tool.function_declarations);
      if (group) return flattenTools(group);
      const declaration = object(tool.function ?? tool);
      const schema = object(declaration.parameters ?? declaration.input_schema ?? declaration.parametersJsonSchema);
      return [{ name: text(declaration.name), isCustom: tool.type === "custom", schema }];
    });

/** The call for a step. If the agent has no tool for pages or files, a command fetches the page or writes the file. */
function toCall(step: TrialStep, tools: Tool[], pageUrl: string): ToolCall {
  switch (step) {
    case "command":
      return toCommand("echo hello", tools);
    case "failing command":
      return toCommand("echo failed >&2; exit 3", tools);
    case "skill":
      return toSkillCall(tools);
    case "first MCP tool":
      return toMcpCall("remote", tools);
    case "second MCP tool":
      return toMcpCall("local", tools);
    case "page":
      return toPageCall(pageUrl, tools);
    case "file":
      return toFileCall(tools);
  }
}

function toSkillCall(tools: Tool[]): ToolCall {
  const tool = tools.find(
    ({ name, schema }) => /^(activate_)?skill$/i.test(name) && hasProperty(schema, /^(skill|name)$/),
  );
  return tool
    ? fillCall(tool, [[/^(skill|name)$/, "acme-guide"]])
    : toCommand("cat .agents/skills/acme-guide/SKILL.md", tools);
}

function toMcpCall(server: "remote" | "local", tools: Tool[]): ToolCall {
  const name = new RegExp(`acme[-_]${server}.*lookup`);
  const tool = tools.find((each) => name.test(each.name));
  if (tool) return fillCall(tool, [[/^name$/, "acme"]]);
  const toolCaller = tools.find((each) => each.name === "tool_call");
  if (toolCaller)
    return { name: toolCaller.name, input: { name: `mcp__acme-${server}__lookup`, arguments: { name: "acme" } } };
  const script = tools.find(isScriptTool);
  if (script) return toScriptCall(script, `await tools.mcp__acme_${server}__lookup({name: "acme"})`);
  return toCommand("echo no such tool", tools);
}

function toPageCall(pageUrl: string, tools: Tool[]): ToolCall {
  const tool = tools.find(({ name, schema }) => /fetch/i.test(name) && hasProperty(schema, pageProperty));
  return tool ? fillCall(tool, [[pageProperty, pageUrl]]) : toCommand(`curl -sS ${pageUrl}`, tools);
}

function toFileCall(tools: Tool[], filePath = file.path): ToolCall {
  const patch = `*** Begin Patch\n*** Add File: hello.txt\n+${file.content}\n*** End Patch\n`;
  const [path, content] = [/^(file_?path|path)$/i, /^(content|file_text|text)$/i];
  const findWriter = (pattern: RegExp) =>
    tools.find(({ name, schema }) => pattern.test(name) && hasProperty(schema, path) && hasProperty(schema, content));
  const writer = findWriter(/^(write|create)(_file)?$/i) ?? findWriter(/write|create/i);
  if (writer)
    return fillCall(writer, [
      [path, filePath],
      [content, file.content],
    ]);
  const patcher = tools.find(({ name }) => name === "apply_patch");
  if (patcher?.isCustom) return { name: patcher.name, input: {}, custom: patch };
  if (patcher) return fillCall(patcher, [[/^(input|patch)$/, patch]]);
  const script = tools.find(isScriptTool);
  if (script) return toScriptCall(script, `await tools.apply_patch(${JSON.stringify(patch)})`);
  return toCommand(`echo '${file.content}' > hello.txt`, tools);
}

/** A call that runs a command with the tools that a request offers. */
export const toCommandCall = (body: Fields, command: string): ToolCall => toCommand(command, listTools(body));

function toCommand(command: string, tools: Tool[]): ToolCall {
  const findShell = (pattern: RegExp) =>
    tools.find(({ name, schema }) => pattern.test(name) && hasProperty(schema, commandProperty));
  const shell =
    findShell(/^(bash|shell|exec_command|execute_command|run_command|run_shell_command)$/i) ??
    findShell(/bash|shell|terminal|command|execute/i);
  if (shell) return fillCall(shell, [[commandProperty, command]]);
  const script = tools.find(isScriptTool);
  if (script) return toScriptCall(script, `await tools.exec_command({cmd: ${JSON.stringify(command)}})`);
  return { name: tools[0]?.name ?? "bash", input: { command } };
}

/** Codex lets some models call its tools only in JavaScript. The input of such a custom tool is text, in `custom`. */
const isScriptTool = ({ name, isCustom }: Tool) => isCustom && name === "exec";
const toScriptCall = ({ name }: Tool, call: string) => ({
  name,
  input: {},
  custom: `text(JSON.stringify(${call}))`,
});

const commandProperty = /^(command|cmd|commands|script)$/;
const pageProperty = /^(url|urls|prompt|requests)$/;

const hasProperty = ({ properties }: Fields, name: RegExp): boolean =>
  Object.keys(object(properties)).some((key) => name.test(key));

/** A call with the given values, and arbitrary values for other required fields. */
function fillCall({ name, schema }: Tool, values: [RegExp, string][]): ToolCall {
  const properties = object(schema.properties);
  const valueEntries = values.flatMap(([pattern, value]) => {
    const key = Object.keys(properties).find((each) => pattern.test(each));
    return key === undefined ? [] : [[key, inShapeOf(object(properties[key]), pattern, value)] as const];
  });
  const requiredEntries = list(schema.required).map(
    (key) => [String(key), arbitraryValue(object(properties[String(key)]))] as const,
  );
  return { name, input: Object.fromEntries([...requiredEntries, ...valueEntries]) };
}

/** A text in the shape that a schema asks for: as it is, in a list, or as the property of an object whose name matches `pattern`. */
function inShapeOf(schema: Fields, pattern: RegExp, value: string): unknown {
  if (schema.type === "array") return [inShapeOf(object(schema.items), pattern, value)];
  if (schema.type !== "object" || !hasProperty(schema, pattern)) return value;
  return fillCall({ name: "", isCustom: false, schema }, [[pattern, value]]).input;
}

function arbitraryValue({ type, enum: values }: Fields): unknown {
  if (Array.isArray(values) && values.length > 0) return values[0];
  const kind = Array.isArray(type) ? type[0] : type;
  const valueByKind: Fields = { boolean: false, number: 1, integer: 1, array: [], object: {} };
  return valueByKind[text(kind)] ?? "trial";
}
