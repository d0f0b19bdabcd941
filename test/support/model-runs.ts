import type { Logger } from "pino";
import type { AgentResources } from "../../src/agents/agent.ts";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { testApp } from "./app.ts";
import type { serveFakeModel, Turn } from "./fake-model.ts";
import { type Site, serveSite } from "./site.ts";

/** The key of the fake model. */
export const modelKey = "sk-the-real-key-0123456789";

/** A turn in which the model calls a tool. */
export const call = (name: string, input: Record<string, unknown>): Turn => ({ toolCalls: [{ name, input }] });
export const finish = (outcome: string, summary: string) => call("finish", { outcome, summary });

/** A product with an API that stores notes, and its documentation: `path` is the documented path of the API. */
function serveProduct(path: string, pages: Parameters<typeof serveSite>[0] = {}) {
  const notes: string[] = [];
  const site: Site = serveSite({
    "/": {
      body: "<title>Notes</title><h1>Notes</h1><p>Keep notes over HTTP.</p><a href='/guide.md'>Guide: add a note</a>",
    },
    "/guide.md": {
      body: `# Add a note\n\nSend the text of the note with a POST request to \`${path}\`.\n\n\`\`\`sh\ncurl -d 'Hello' https://notes.test${path}\n\`\`\`\n`,
    },
    "/long.md": { body: `# Long\n\n${"All work and no play. ".repeat(50_000)}` },
    "/api/notes": async (request) => {
      if (request.method !== "POST") return Response.json(notes);
      notes.push(await request.text());
      return Response.json({ id: notes.length }, { status: 201 });
    },
    ...pages,
  });
  return { site, notes };
}

type App = ReturnType<typeof testApp>;
type Options = {
  env?: Record<string, string>;
  path?: string;
  dataDir?: string;
  log?: Logger;
  workers?: NonNullable<Parameters<typeof testApp>[0]>["workers"];
  before?: (app: App) => void | Promise<void>;
  many?: number;
  /** Filled with the tokens of each run when it starts. */
  tokens?: string[];
  /** Further fields of the prompt. */
  prompt?: Record<string, unknown>;
  /** Further pages of the product. */
  pages?: Parameters<typeof serveSite>[0];
};

/** Runs the model agent, with a fake model, on a product that stores notes. */
export function modelRuns(fake: ReturnType<typeof serveFakeModel>) {
  /** Runs of a prompt with the model agent, over REST. */
  async function runsOf(
    name: string,
    { env = {}, path = "/api/notes", before, many = 1, prompt: more = {}, pages, tokens = [], ...rest }: Options = {},
  ) {
    const product = serveProduct(path, pages);
    const model = `openai-compatible/${name}`;
    const agent = createModelAgent({ version: "test" });
    const app = testApp({
      agents: {
        llm: {
          ...agent,
          run(task, context) {
            const { model: way, sandbox } = context.resources as AgentResources;
            tokens.push(way.token, ...("egress" in sandbox ? [sandbox.egress.token] : []));
            return agent.run(task, context);
          },
        },
      },
      env: {
        OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
        OPENAI_COMPATIBLE_API_KEY: modelKey,
        EVALD_AGENT_MODEL: model,
        EVALD_ALLOW_PRIVATE: "127.0.0.1",
        EVALD_MODEL_PRICES: `{"${model}": {"in": 10, "out": 100, "cached": 1}}`,
        ...env,
      },
      ...rest,
    });
    const { send, runJobs, service, a } = app;
    await before?.(app);
    const prompt = await send("POST", "/api/v1/prompts", {
      body: { text: "Add a note by the docs at https://notes.test/", endGoal: "A note was added.", ...more },
    });
    const urlMap = { "notes.test": product.site.url };
    const { runIds } = await requestEval(service.ctx, a.org, prompt.body.id, {
      urlMap,
      runs: many,
      trigger: "api",
    });
    await runJobs();
    const runs = await Promise.all(runIds.map(async (id) => (await send("GET", `/api/v1/runs/${id}`)).body));
    await service.stop(0);
    product.site.stop();
    return { app, runs, notes: product.notes, tokens };
  }

  /** One such run with its report, its events and its attempts. */
  async function runOf(name: string, options: Options = {}) {
    const { app, runs, ...rest } = await runsOf(name, options);
    const [run] = runs;
    const get = async (path: string) => (await app.send("GET", `/api/v1${path}`)).body;
    const slug = run.report?.slug;
    const report = slug && (await get(`/reports/${slug}`));
    const events = slug ? (await get(`/reports/${slug}/trace?limit=500`)).events : [];
    return { ...rest, app, run, report, events, attempts: await get(`/runs/${run.runId}/attempts`) };
  }

  return { runsOf, runOf };
}
