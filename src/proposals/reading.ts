import type { ReadingOutput, ReadingRefusal } from "../agents/explorer/docs-reading.ts";
import { readPage } from "../agents/page.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context } from "../context.ts";
import type { RunHost } from "../runs/attempt.ts";
import type { HelpText, ProposalPage, ProposalSource } from "./proposal.ts";
import type { ProposalRequest, SourceFile } from "./schema.ts";

/** What is read for one set of proposals at most, and for how long. */
const limits = { pages: 40, requests: 250, wallClockMs: 180_000 };

/** What was read, or why the docs can't be. */
export type Reading = { pages: ProposalPage[]; apiDescriptions: ProposalSource["apiDescriptions"] } | Refusal;
type Refusal = { refusal: ReadingRefusal; url: string };

/** Reads docs in the process of an explorer, within its limits. `id` is unique for each attempt. Throws AgentFailure. */
export async function readSource(
  ctx: Context,
  { executor, allow }: RunHost,
  id: string,
  { docsUrl, openapiUrl, primaryTask }: ProposalRequest,
  signal: AbortSignal,
): Promise<Reading> {
  const pages: ProposalPage[] = [];
  const apiDescriptions: ProposalSource["apiDescriptions"] = [];
  let refusal: Refusal | null = null;
  const ofServer = decideLimits(null, ctx.config);
  const order = {
    id,
    agent: "explorer",
    task: {
      text: primaryTask ?? "",
      endGoal: primaryTask ?? null,
      reading: { apiUrl: openapiUrl ?? null },
      startUrls: [docsUrl],
      productUrl: null,
      urlMap: {},
      declaredChecks: [],
      limits: {
        ...ofServer,
        wallClockMs: Math.min(ofServer.wallClockMs, limits.wallClockMs),
        maxPages: Math.min(ofServer.maxPages, limits.pages),
        maxRequests: Math.min(ofServer.maxRequests, limits.requests),
      },
    },
    checkSecrets: {},
    labels: [],
    allow: allow(),
    model: null,
    archive: null,
    skillsArchive: null,
    site: null,
    login: null,
  };
  const hooks = { signal, hide() {}, onEgress() {}, onWait() {}, onStart() {}, onEnd() {} };
  for await (const event of executor.run(order, hooks)) {
    if (event.type !== "tool_result" || event.tool !== readingTool) continue;
    const output = event.output as ReadingOutput;
    if ("page" in output) pages.push(output.page);
    else if ("apiDescription" in output) apiDescriptions.push(output.apiDescription);
    else refusal ??= output;
  }
  return refusal ?? { pages, apiDescriptions };
}

/** Tool of the results with a `ReadingOutput`; its file loads the whole explorer, which the service doesn't need. */
const readingTool = "read_docs";

/** Everything that proposals are made from. */
export function toSource(
  request: ProposalRequest,
  { pages, apiDescriptions }: Exclude<Reading, Refusal>,
  count: number,
): ProposalSource {
  const { docsUrl, primaryTask, product, files = [] } = request;
  const readme = files.find(({ command }) => command === undefined);
  return {
    product: product ?? productOf(docsUrl, pages[0]?.title ?? ""),
    docsUrl,
    pages,
    apiDescriptions,
    readme: readme ? toReadme(readme) : null,
    helpTexts: files.flatMap(toHelpText),
    tools: [],
    primaryTask: primaryTask ?? null,
    count,
  };
}

const toReadme = ({ name, text }: SourceFile): ProposalPage => readPage(name, "text/markdown", text);

const toHelpText = ({ name, command, text }: SourceFile): HelpText[] =>
  command === undefined ? [] : [{ url: name, command, text }];

/** Words that say what a site is, not what it is about. */
const genericWords =
  /\b(docs?|documentation|home|welcome to|introduction|overview|getting started|official|manual|reference|guide|v?\d+(\.\d+)+)\b/gi;

/** The name of a product: the part of the title of its docs that is also in their host, or else the first one; without a title, from the host. */
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
