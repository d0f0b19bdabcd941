import { type DocsSite, generateSite } from "../truth/docs-site.ts";
import { pathOf } from "../truth/markup.ts";
import { type DocsChange, docsChanges } from "./docs-changes.ts";
import type { Turn } from "./fake-model.ts";
import { call, finish } from "./model-runs.ts";
import { randomOf } from "./random.ts";

export const historyDays = 60;
const promptCount = 44;
const sitePages = 9;

/** How a model agent works through the docs: each way is a session of its own. */
const ways = ["direct", "detour", "guess", "thorough"] as const;
type Way = (typeof ways)[number];

/** What happens to the docs, the product or the agent of a prompt on a day, counted from the first of the history. */
type Event =
  | { what: DocsChange; day: number; kind: "fell" | "rose" | "small" }
  | { what: "endpoint_moved" | "page_moved" | "sample_outdated"; day: number; kind: "fell" | "rose" }
  | { what: "agent_version"; day: number; kind: "none" };

export type Plan = {
  title: string;
  seed: number;
  agent: "explorer" | "llm";
  event: Event | null;
  /** Runs per evaluation, and days between evaluations. */
  runs: number;
  everyDays: number;
  /** Share of the evaluations whose docs differ by an edit that has nothing to do with the goal. */
  editedShare: number;
  /** How often the model agent goes each way. */
  shares: Record<Way, number>;
};

/** What is planted, by the position of its prompt. */
const events: Record<number, Event> = {
  0: { what: "page_removed", day: 45, kind: "fell" },
  1: { what: "wall", day: 52, kind: "fell" },
  2: { what: "scripts_only", day: 38, kind: "fell" },
  3: { what: "endpoint_moved", day: 48, kind: "fell" },
  4: { what: "links_dead", day: 50, kind: "fell" },
  5: { what: "prerequisite_removed", day: 36, kind: "fell" },
  6: { what: "prerequisite_loop", day: 56, kind: "fell" },
  7: { what: "page_moved", day: 44, kind: "fell" },
  8: { what: "samples_broken", day: 42, kind: "small" },
  9: { what: "wall", day: 40, kind: "rose" },
  10: { what: "links_dead", day: 46, kind: "rose" },
  11: { what: "agent_version", day: 44, kind: "none" },
  12: { what: "endpoint_renamed", day: 41, kind: "small" },
  15: { what: "page_moved", day: 47, kind: "rose" },
  19: { what: "sample_outdated", day: 53, kind: "fell" },
  // Long ago.
  16: { what: "links_dead", day: 8, kind: "fell" },
};
/** Home lists changes of this many days. */
export const listedDays = 30;

/** The prompts of a big organization, and what changes. The same seed gives the same plan. */
export function planOrganization(seed: number): Plan[] {
  const random = randomOf(seed * 31 + 5);
  return Array.from({ length: promptCount }, (_, i): Plan => {
    const siteSeed = seed * 100 + i;
    const agent = i % 4 === 3 ? "llm" : "explorer";
    const shares = Object.fromEntries(ways.map((way) => [way, 0.1 + random()])) as Plan["shares"];
    return {
      title: `${generateSite(siteSeed, { size: sitePages }).goal} (${i + 1})`,
      seed: siteSeed,
      agent,
      event: events[i] ?? null,
      ...(agent === "explorer"
        ? { runs: 1, everyDays: 3 }
        : i % 8 === 3
          ? { runs: 4, everyDays: 4 }
          : { runs: 1, everyDays: 1 }),
      editedShare: 0.1 + 0.3 * random(),
      shares,
    };
  });
}

/** Docs, product and agent of a prompt at one time. `isEdited`: with a change that has nothing to do with the goal. */
export type State = { isAfter: boolean; isEdited: boolean; way: Way };

/** All states of a prompt that its history consists of. */
export function statesOf({ agent, event, seed }: Plan): State[] {
  const sides = event === null ? [false] : [false, true];
  return sides.flatMap((isAfter): State[] =>
    agent === "explorer"
      ? (seed % 3 === 0 ? [false] : [false, true]).map((isEdited) => ({ isAfter, isEdited, way: "direct" }))
      : ways.map((way) => ({ isAfter, isEdited: false, way })),
  );
}

/** The site of a prompt in a state, and the path of the page that its change is about; null: no change of the docs. */
export function siteOf(
  { seed, agent, event }: Plan,
  { isAfter, isEdited }: State,
): { site: DocsSite; path: string | null } {
  const site = generateSite(seed, { size: sitePages });
  const path =
    event === null || event.what === "agent_version"
      ? null
      : event.what === "endpoint_moved" || event.what === "page_moved" || event.what === "sample_outdated"
        ? pathOf(site, site.answer.page)
        : isDefective(event, isAfter)
          ? docsChanges[event.what](site)
          : docsChanges[event.what](generateSite(seed, { size: sitePages }));
  if (event?.what === "page_moved" && isDefective(event, isAfter)) movePage(site);
  if (agent === "llm") addSample(site);
  if (isEdited) edit(site);
  return { site, path };
}

const isDefective = ({ kind }: Event, isAfter: boolean) => (kind === "rose") !== isAfter;

/** Another address for the page with the answer, to which nothing leads but the sitemap. */
function movePage(site: DocsSite): void {
  const page = site.pages.get(site.answer.page);
  if (!page) throw new Error("no answer");
  site.pages.delete(page.id);
  site.pages.set(`${page.id}-guide`, { ...page, id: `${page.id}-guide` });
  site.sitemap = [...site.pages.keys()];
}

/** A sample of the request that the model agent copies. */
function addSample(site: DocsSite): void {
  const page = site.pages.get(site.answer.page) ?? site.pages.get(`${site.answer.page}-guide`);
  const section = page?.sections.find(({ heading }) => heading === site.answer.heading);
  const [server] = site.api.servers;
  section?.blocks.push({
    kind: "code",
    language: "bash",
    code: `curl -X POST ${server?.url}${endpointOf(site)} -H "Content-Type: application/json" -d '{}'`,
  });
}

/** An edit elsewhere: a broken sample on one page, and another wording on another. */
function edit(site: DocsSite): void {
  const others = [...site.pages.values()].filter(({ id }) => ![site.answer.page, ...site.needs].includes(id));
  others.at(-1)?.sections[0]?.blocks.push({ kind: "text", text: ["This page was revised."] });
  const sample = others
    .at(-2)
    ?.sections.flatMap(({ blocks }) => blocks)
    .find((block) => block.kind === "code");
  if (sample?.kind === "code") sample.code = `${sample.code}\n{ ( [ "unclosed`;
}

/** The path of the API that the sample of the answer names. */
function endpointOf({ answer }: DocsSite): string {
  const verb = /^\w+/.exec(answer.heading)?.[0]?.toLowerCase() ?? "";
  return `/v1/${answer.page}s/id_123/${verb}`;
}

/** What the scripted model does in a state. `docs`, `api`: origins. */
export function turnsOf(plan: Plan, state: State, docs: string, api: string): Turn[] {
  const { site } = siteOf(plan, state);
  const { event } = plan;
  const defect = event !== null && isDefective(event, state.isAfter) ? event.what : null;
  const read = (id: string) => call("fetch_page", { url: `${docs}${pathOf(site, id)}` });
  const send = (path: string, body = "{}") =>
    call("http_request", {
      method: "POST",
      url: `${api}${path}`,
      headers: { "content-type": "application/json" },
      body,
    });
  const endpoint = endpointOf(site);
  const area = [...site.pages.values()].find(
    ({ id, sections }) => id.startsWith("area-") && JSON.stringify(sections).includes(`"to":"${site.answer.page}"`),
  );
  const answers: Partial<Record<string, Turn[]>> = {
    page_moved: [read(site.answer.page), read("api-reference"), read(`${site.answer.page}-guide`)],
  };
  const requests: Partial<Record<string, Turn[]>> = {
    endpoint_moved: [send(endpoint), read("api-reference"), send(endpoint.replace("/v1/", "/v2/"))],
    sample_outdated: [send(endpoint), read("api-reference"), send(endpoint, '{"version":2}')],
  };
  const before: Record<Way, Turn[]> = {
    direct: [],
    detour: [read("quickstart"), read("install")],
    guess: [read("guides-start")],
    thorough: [read("install"), read("authentication")],
  };
  return [
    read("index"),
    ...before[state.way],
    ...(defect === "agent_version" ? ["setup", "howto", "tutorial", "examples"].map(read) : []),
    read(area?.id ?? "index"),
    ...(answers[defect ?? ""] ?? [read(site.answer.page)]),
    ...(requests[defect ?? ""] ?? [send(endpoint)]),
    finish("succeeded", "The request was accepted."),
  ];
}

/** What the product answers to a request in a state. */
export async function answerOfProduct(plan: Plan, state: State, request: Request): Promise<Response> {
  const endpoint = endpointOf(siteOf(plan, state).site);
  const { event } = plan;
  const defect = event !== null && isDefective(event, state.isAfter) ? event.what : null;
  const path = defect === "endpoint_moved" ? endpoint.replace("/v1/", "/v2/") : endpoint;
  if (new URL(request.url).pathname !== path)
    return Response.json({ code: "not_found", message: "No such route" }, { status: 404 });
  if (defect === "sample_outdated" && !(await request.text()).includes("version"))
    return Response.json({ code: "invalid", message: "version is required" }, { status: 422 });
  return Response.json({ status: "done" });
}
