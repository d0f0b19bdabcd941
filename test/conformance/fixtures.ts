import { createHmac } from "node:crypto";
import type { Surface } from "../../src/mcp/endpoint.ts";
import type { Call } from "../../src/mcp/tool.ts";
import { invalidParams, RpcError } from "../../src/mcp/tool.ts";

// Tools, resources and prompts that the conformance suite calls. Their names and responses are in its descriptions.

type Json = Record<string, unknown>;
/** The context of the older or the newer SDK. */
type Sdk = {
  sendNotification?: (notification: Json) => Promise<void>;
  sendRequest?: (request: Json, schema: unknown) => Promise<Json>;
  mcpReq?: {
    envelope?: Record<string, Record<string, unknown>>;
    inputResponses?: Record<string, { action?: string; content?: Json }>;
    requestState: () => string | undefined;
    log: (level: string, data: unknown) => Promise<void>;
  };
};
type Run = (args: Record<string, string>, call: Call, sdk: Sdk) => object | Promise<object>;

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";
const text = (words: string) => ({ type: "text", text: words });
const said = (words: string) => ({ content: [text(words)] });
const image = { type: "image", data: png, mimeType: "image/png" };
const embedded = (uri: string, mimeType: string, words: string) => ({
  type: "resource",
  resource: { uri, mimeType, text: words },
});
const moment = () => new Promise((resolve) => setTimeout(resolve, 50));

/** A response of the client, of any shape. */
const anything = { safeParse: (data: unknown) => ({ success: true, data }), parse: (data: unknown) => data };

const elicitation = (message: string, properties: Json, required: string[] = Object.keys(properties)) => ({
  method: "elicitation/create",
  params: { message, requestedSchema: { type: "object", properties, required } },
});
const sampling = (words: string, maxTokens = 100) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(words) }], maxTokens },
});
const askName = elicitation("What is your name?", { name: { type: "string" } });
const askRoots = { method: "roots/list", params: {} };

/** Asks the client in the middle of a call, as revisions up to 2025-11-25 do. */
const asks =
  (request: (args: Record<string, string>) => Json, tell: (answer: Json) => string): Run =>
  async (args, _, { sendRequest }) => {
    if (!sendRequest) throw new Error("this revision asks by results");
    return said(tell(await sendRequest(request(args), anything)));
  };

const elicited = (answer: Json) => `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;

/** Asks through a result, as 2026-07-28 does, until everything is answered; then calls `done`. */
const needs = (inputRequests: Json, requestState?: string) => ({
  resultType: "input_required",
  inputRequests,
  ...(requestState === undefined ? {} : { requestState }),
});
const sign = (state: string) => `${state}.${createHmac("sha256", "a secret of this test").update(state).digest("hex")}`;
function verified({ mcpReq }: Sdk): string | undefined {
  const state = mcpReq?.requestState();
  if (state !== undefined && sign(state.slice(0, state.lastIndexOf("."))) !== state)
    throw invalidParams("Invalid state");
  return state?.slice(0, state.lastIndexOf("."));
}
const answers = ({ mcpReq }: Sdk) => mcpReq?.inputResponses ?? {};
const accepted = (sdk: Sdk, key: string, field: string): unknown => {
  const { action, content } = answers(sdk)[key] ?? {};
  return action === "accept" ? content?.[field] : undefined;
};
const declared = ({ mcpReq }: Sdk) => mcpReq?.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};

const log = async (words: string, { sendNotification, mcpReq }: Sdk) =>
  mcpReq
    ? mcpReq.log("info", words)
    : sendNotification?.({ method: "notifications/message", params: { level: "info", data: words } });

const tools: Record<string, { run: Run; input?: Json; streams?: boolean }> = {
  test_simple_text: { run: () => said("This is a simple text response for testing.") },
  test_image_content: { run: () => ({ content: [image] }) },
  test_audio_content: { run: () => ({ content: [{ type: "audio", data: wav, mimeType: "audio/wav" }] }) },
  test_embedded_resource: {
    run: () => ({
      content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    }),
  },
  test_multiple_content_types: {
    run: () => ({
      content: [
        text("Multiple content types test:"),
        image,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
      ],
    }),
  },
  test_error_handling: {
    run: () => ({ isError: true, ...said("This tool intentionally returns an error for testing") }),
  },
  test_tool_with_progress: {
    streams: true,
    async run(_, { progress }) {
      for (const done of [0, 50, 100]) {
        progress(done, 100, `${done} of 100`);
        await moment();
      }
      return said("Done.");
    },
  },
  test_tool_with_logging: {
    streams: true,
    async run(_, __, sdk) {
      for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await log(words, sdk);
        await moment();
      }
      return said("Done.");
    },
  },
  test_logging_tool: {
    async run(_, __, sdk) {
      await log("Nobody asked to hear this.", sdk);
      return said("Done.");
    },
  },
  test_sampling: {
    streams: true,
    input: { prompt: { type: "string" } },
    run: asks(
      ({ prompt = "" }) => sampling(prompt),
      (answer) => `LLM response: ${(answer.content as { text: string }).text}`,
    ),
  },
  test_elicitation: {
    streams: true,
    input: { message: { type: "string" } },
    run: asks(
      ({ message = "" }) => elicitation(message, { username: { type: "string" }, email: { type: "string" } }),
      (answer) => `User response: ${elicited(answer)}`,
    ),
  },
  test_elicitation_sep1034_defaults: {
    streams: true,
    run: asks(
      () =>
        elicitation(
          "Your details",
          {
            name: { type: "string", default: "John Doe" },
            age: { type: "integer", default: 30 },
            score: { type: "number", default: 95.5 },
            status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
            verified: { type: "boolean", default: true },
          },
          [],
        ),
      (answer) => `Elicitation completed: ${elicited(answer)}`,
    ),
  },
  test_elicitation_sep1330_enums: {
    streams: true,
    run: asks(
      () => {
        const plain = { type: "string", enum: ["option1", "option2", "option3"] };
        const titled = (word: string) =>
          ["First", "Second", "Third"].map((which, i) => ({ const: `value${i + 1}`, title: `${which} ${word}` }));
        return elicitation(
          "Your choice",
          {
            untitledSingle: plain,
            titledSingle: { type: "string", oneOf: titled("Option") },
            legacyEnum: {
              type: "string",
              enum: ["opt1", "opt2", "opt3"],
              enumNames: ["Option One", "Option Two", "Option Three"],
            },
            untitledMulti: { type: "array", items: plain },
            titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
          },
          [],
        );
      },
      (answer) => `Elicitation completed: ${elicited(answer)}`,
    ),
  },
  test_missing_capability: {
    run(_, __, sdk) {
      if (declared(sdk).sampling) return said("Sampling is declared.");
      throw new RpcError(-32021, "Missing required client capability", { requiredCapabilities: { sampling: {} } });
    },
  },
  test_streaming_elicitation: { run: () => needs({ user_name: askName }) },
  test_input_required_result_elicitation: {
    run(_, __, sdk) {
      const name = accepted(sdk, "user_name", "name");
      return typeof name === "string" ? said(`Hello, ${name}!`) : needs({ user_name: askName });
    },
  },
  test_input_required_result_sampling: {
    run(_, __, sdk) {
      const answer = answers(sdk).capital_question;
      return answer
        ? said(JSON.stringify(answer.content))
        : needs({ capital_question: sampling("What is the capital of France?") });
    },
  },
  test_input_required_result_list_roots: {
    run(_, __, sdk) {
      const answer = answers(sdk).client_roots;
      return answer ? said(JSON.stringify(answer)) : needs({ client_roots: askRoots });
    },
  },
  test_input_required_result_request_state: {
    run: (_, __, sdk) =>
      verified(sdk) === "asked" && accepted(sdk, "confirm", "ok") !== undefined
        ? said("state-ok")
        : needs({ confirm: elicitation("Please confirm", { ok: { type: "boolean" } }) }, sign("asked")),
  },
  test_input_required_result_tampered_state: {
    run: (_, __, sdk) =>
      verified(sdk) === "asked"
        ? said("state-ok")
        : needs({ confirm: elicitation("Please confirm", { ok: { type: "boolean" } }) }, sign("asked")),
  },
  test_input_required_result_multiple_inputs: {
    run(_, __, sdk) {
      const { user_name, greeting, client_roots } = answers(sdk);
      return verified(sdk) === "asked" && user_name && greeting && client_roots
        ? said("All is answered.")
        : needs(
            { user_name: askName, greeting: sampling("Generate a greeting", 50), client_roots: askRoots },
            sign("asked"),
          );
    },
  },
  test_input_required_result_multi_round: {
    run(_, __, sdk) {
      const state = verified(sdk);
      const color = elicitation("Step 2: What is your favorite color?", { color: { type: "string" } });
      const name = elicitation("Step 1: What is your name?", { name: { type: "string" } });
      if (state === "step 2" && accepted(sdk, "step2", "color") !== undefined) return said("Done.");
      if (state === "step 1" && accepted(sdk, "step1", "name") !== undefined)
        return needs({ step2: color }, sign("step 2"));
      return needs({ step1: name }, sign("step 1"));
    },
  },
  test_input_required_result_capabilities: {
    run(_, __, sdk) {
      const can = declared(sdk);
      return needs({
        ...(can.elicitation ? { user_name: askName } : {}),
        ...(can.sampling ? { greeting: sampling("Generate a greeting") } : {}),
      });
    },
  },
};

const resources: Record<string, Json> = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: png },
  "test://watched-resource": { mimeType: "text/plain", text: "Somebody watches this." },
};

const message = (content: object) => ({ role: "user", content });
const prompts: Record<string, { arguments?: string[]; get: (args: Record<string, string>, sdk: Sdk) => object }> = {
  test_simple_prompt: { get: () => ({ messages: [message(text("This is a simple prompt for testing."))] }) },
  test_prompt_with_arguments: {
    arguments: ["arg1", "arg2"],
    get: ({ arg1, arg2 }) => ({
      messages: [message(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  },
  test_prompt_with_embedded_resource: {
    arguments: ["resourceUri"],
    get: ({ resourceUri = "" }) => ({
      messages: [
        message(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        message(text("Please process the embedded resource above.")),
      ],
    }),
  },
  test_prompt_with_image: {
    get: () => ({ messages: [message(image), message(text("Please analyze the image above."))] }),
  },
  test_input_required_result_prompt: {
    get: (_, sdk) =>
      accepted(sdk, "user_context", "context") === undefined
        ? needs({
            user_context: elicitation("What context should the prompt use?", { context: { type: "string" } }),
          })
        : { messages: [message(text("Done."))] },
  },
};

/** The fixtures as what an endpoint serves. */
export const fixtures: Surface = {
  capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} },
  instructions: "Fixtures of the conformance suite.",
  isStreamed: (method, params) => method === "tools/call" && tools[(params as { name: string }).name]?.streams === true,
  handlers: {
    "tools/list": () => ({
      tools: Object.entries(tools).map(([name, { input = {} }]) => ({
        name,
        description: "A fixture.",
        inputSchema: { type: "object", properties: input, required: Object.keys(input) },
      })),
    }),
    "tools/call": ({ name, arguments: args = {} }, call, sdk) => {
      if (!tools[name]) throw invalidParams(`Unknown tool: ${name}`);
      return tools[name].run(args, call, sdk as Sdk);
    },
    "resources/list": () => ({
      resources: Object.entries(resources).map(([uri, { mimeType }]) => ({
        uri,
        name: uri.slice(7),
        description: "A fixture.",
        mimeType,
      })),
    }),
    "resources/templates/list": () => ({
      resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", description: "A fixture." }],
    }),
    "resources/read": ({ uri }) => {
      const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
      const found = id
        ? {
            mimeType: "application/json",
            text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
          }
        : resources[uri];
      if (!found) throw new RpcError(-32002, "Resource not found", { uri });
      return { contents: [{ uri, ...found }] };
    },
    "resources/subscribe": () => ({}),
    "resources/unsubscribe": () => ({}),
    "prompts/list": () => ({
      prompts: Object.entries(prompts).map(([name, { arguments: args = [] }]) => ({
        name,
        description: "A fixture.",
        arguments: args.map((argument) => ({ name: argument, description: "A text.", required: true })),
      })),
    }),
    "prompts/get": ({ name, arguments: args = {} }, _, sdk) => {
      if (!prompts[name]) throw invalidParams(`Unknown prompt: ${name}`);
      return prompts[name].get(args, sdk as Sdk);
    },
    "completion/complete": () => ({ completion: { values: [], total: 0, hasMore: false } }),
  },
};
