import type { Check } from "../agents/agent.ts";
import type { CheckSecrets } from "../agents/check-secrets.ts";
import type { ReadingOutput, ReadingRefusal } from "../agents/explorer/docs-reading.ts";
import { readPage } from "../agents/page.ts";
import { descriptionIn, isSkillFile } from "../agents/sandbox/skills.ts";
import type { DeclaredCheck, ReadingTask, Task } from "../agents/task.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context } from "../context.ts";
import type { SessionOrder } from "../places/executor.ts";
import type { RunHost } from "../runs/attempt.ts";
import { anyWordOf } from "./patterns.ts";
import type { HelpText, ProposalPage, ProposalSource, SkillText } from "./proposal.ts";
import type { ProposalRequest, SourceFile } from "./schema.ts";

/** How many pages and requests one set of proposals may need, and how long reading may take. */
const limits = { pages: 40, requests: 250, wallClockMs: 180_000 };
/** The tool whose results are a `ReadingOutput`. It is not imported from the explorer, because the service doesn't load the explorer. */
const readingTool = "read_docs";
const noHooks = { hide() {}, onEgress() {}, onWait() {}, onStart() {}, onEnd() {} };

/** What was read, or why the docs can't be read. */
export type Reading = Pick<ProposalSource, "pages" | "apiDescriptions" | "mcpServers"> | Refusal;
type Refusal = { refusal: ReadingRefusal; url: string };

/** Reads docs in the process of an explorer, within its limits. `id` is unique for each attempt. Throws AgentFailure. */
export async function readSource(
  ctx: Context,
  { executor, allow }: RunHost,
  id: string,
  { docsUrl, openapiUrl, mcpUrl, primaryTask }: ProposalRequest,
  signal: AbortSignal,
): Promise<Reading> {
  const pages: ProposalPage[] = [];
  const apiDescriptions: ProposalSource["apiDescriptions"] = [];
  const mcpServers: ProposalSource["mcpServers"] = [];
  let refusal: Refusal | null = null;
  const task = { text: primaryTask ?? "", endGoal: primaryTask ?? null, startUrls: [docsUrl] };
  const reading = { apiUrl: openapiUrl ?? null, mcpUrl: mcpUrl ?? null };
  const order = toOrder(ctx, allow(), id, { ...task, reading, declaredChecks: [] }, {});
  for await (const event of executor.run(order, { ...noHooks, signal })) {
    if (event.type !== "tool_result" || event.tool !== readingTool) continue;
    const output = event.output as ReadingOutput;
    if ("page" in output) pages.push(output.page);
    else if ("apiDescription" in output) apiDescriptions.push(output.apiDescription);
    else if ("mcpServer" in output) mcpServers.push(output.mcpServer);
    else refusal ??= output;
  }
  return refusal ?? { pages, apiDescriptions, mcpServers };
}

type ReadingOrder = Pick<Task, "text" | "endGoal" | "startUrls" | "declaredChecks"> & { reading: ReadingTask };

/** The order for a process of the explorer that works for proposals, within its limits. */
function toOrder(
  ctx: Context,
  allow: readonly AllowRule[],
  id: string,
  task: ReadingOrder,
  checkSecrets: CheckSecrets,
): SessionOrder {
  const serverLimits = decideLimits(null, ctx.config);
  return {
    id,
    agent: "explorer",
    task: {
      ...task,
      productUrl: null,
      urlMap: {},
      limits: {
        ...serverLimits,
        wallClockMs: Math.min(serverLimits.wallClockMs, limits.wallClockMs),
        maxPages: Math.min(serverLimits.maxPages, limits.pages),
        maxRequests: Math.min(serverLimits.maxRequests, limits.requests),
      },
    },
    checkSecrets,
    labels: [],
    allow,
    model: null,
    archive: null,
    skillsArchive: null,
    filesToken: null,
    site: null,
    login: null,
  };
}

/** Sends the requests of checks, and returns their results in the same order. `id` is unique for each attempt. Throws AgentFailure. */
export async function runRequestChecks(
  ctx: Context,
  { executor, allow }: RunHost,
  id: string,
  { docsUrl }: ProposalRequest,
  { declaredChecks, secrets }: { declaredChecks: DeclaredCheck[]; secrets: CheckSecrets },
  signal: AbortSignal,
): Promise<Check[]> {
  const task = { text: "", endGoal: null, startUrls: [docsUrl], declaredChecks, reading: "checks" as const };
  const results: Check[] = [];
  for await (const event of executor.run(toOrder(ctx, allow(), id, task, secrets), { ...noHooks, signal }))
    if (event.type === "tool_result") results.push(...(event.checks ?? []));
  return results;
}

/** Everything that proposals are made from. */
export function toSource(
  request: ProposalRequest,
  { pages, apiDescriptions, mcpServers }: Exclude<Reading, Refusal>,
  count: number,
): ProposalSource {
  const { docsUrl, primaryTask, product, files = [] } = request;
  const texts = files.filter(({ command }) => command === undefined);
  const readme = texts.find(({ name }) => !isSkillFile(name));
  const skill = texts.find(({ name }) => isSkillFile(name));
  return {
    product: product ?? productOf(docsUrl, pages[0]?.title ?? ""),
    docsUrl,
    pages,
    apiDescriptions,
    readme: readme ? readPage(readme.name, "text/markdown", readme.text) : null,
    skill: skill ? toSkillText(skill) : null,
    helpTexts: files.flatMap(toHelpText),
    mcpServers,
    primaryTask: primaryTask ?? null,
    count,
  };
}

/** The front matter of a skill as a page, because agents see only the front matter before they choose the skill. null: it has no description. */
function toSkillText({ name, text }: SourceFile): SkillText | null {
  const description = descriptionIn(text);
  if (description === "") return null;
  const [frontMatter = ""] = /^---\r?\n.*?\r?\n---/s.exec(text) ?? [];
  const parts = { headings: [], samples: [], links: [] };
  return { description, page: { url: name, title: "", lead: "", language: null, markdown: frontMatter, ...parts } };
}

const toHelpText = ({ name, command, text }: SourceFile): HelpText[] =>
  command === undefined ? [] : [{ url: name, command, text }];

const kindsOfSites = /docs?|documentation|home|welcome to|official|manual|reference|guide/;
const openings = /introduction|overview|getting started|v?\d+(?:\.\d+)+/;
/** Words that say what kind of site it is, and not what it is about. */
const genericWords = new RegExp(anyWordOf(kindsOfSites, openings), "gi");

/** The name of a product: the part of the docs' title that is also in their host, else the first part. Without a title, it comes from the host. */
function productOf(docsUrl: string, title: string): string {
  const { hostname } = new URL(docsUrl);
  const parts = title
    .split(/\s+[|–—·:-]\s+|:\s+/)
    .map((part) =>
      part
        .replace(genericWords, " ")
        .replace(/[^\p{L}\p{N}.+#_ -]/gu, " ")
        .replace(/\s+/g, " ")
        .trim(),
    )
    .filter((part) => part !== "" && part.length <= 40);
  const inHost = parts.find((part) => hostname.includes(part.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "")));
  const labels = hostname.split(".").filter((label) => !/^(docs?|www|developers?|api|help|latest)$/.test(label));
  return inHost ?? parts[0] ?? labels[0] ?? hostname;
}
