import { type Static, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { Nullable, OneOf } from "../schema.ts";
import { type EndingName, endings } from "./endings.ts";
import { failedCodes, failureCauses } from "./failure.ts";
import { siteHosts } from "./site/host-rules.ts";

const Texts = Type.Array(Type.String());
const Count = Type.Integer({ minimum: 0 });
const Share = Type.Number({ minimum: 0, maximum: 1 });

/** A section of a page, as the explorer compares it with the goal. */
const Section = {
  url: Type.String(),
  /** Its headings, from the title of the page down: `Guide > Install > npm`. */
  heading: Type.String(),
  /** Line in the Markdown of the page, 1-based. */
  line: Type.Integer(),
  /** Share of the goal in its text. */
  share: Share,
  /** Share of the goal in its headings. Its maximum isn't checked. */
  headingShare: Type.Number({ minimum: 0 }),
  /** The words of the goal that it contains. */
  terms: Texts,
  hasSample: Type.Boolean(),
};

const state = OneOf(["likely", "unclear"]);

const LinkEdit = Type.Object({
  /** The page with the dead link, and the line of the link in its text. */
  url: Type.String({ minLength: 1 }),
  line: Type.Integer(),
  /** URL of the page that doesn't exist. */
  target: Type.String({ minLength: 1 }),
  /** The whole line. */
  text: Type.String({ minLength: 1 }),
  /** The link as it is written, and as it should be. */
  found: Type.String({ minLength: 1 }),
  expected: Type.String({ minLength: 1 }),
});
/** The line of a page with a dead link, and the target that leads to the intended page. */
export type LinkEdit = Static<typeof LinkEdit>;

/** What a judge is asked about: `model` of the judge, digest of its instructions, and the goal that it judges. */
const Assignment = { model: Type.String(), rubric: Type.String(), goal: Type.String() };

/**
 * What each milestone says, by its name. A stored event is limited to 32 KiB: its longest texts and lists may be cut, so no length is
 * required of them.
 */
const details = {
  /** An agent starts. */
  started: Type.Object({
    agent: Type.String(),
    version: Type.String(),
    kind: OneOf(["rules", "model"]),
    model: Nullable(Type.String()),
    goal: Type.String(),
    /** The start URLs. */
    starts: Texts,
    /** URL of the product. The explorer, which uses no product, leaves it out. */
    product: Type.Optional(Nullable(Type.String())),
    /** The tools of one of evald's own agents. `missing`: the tools that it would have on another machine, with the reason. */
    tools: Type.Optional(Texts),
    missing: Type.Optional(Texts),
    /** Revision of a coding agent's preset, and whether evald was tested with this version of the agent. */
    preset: Type.Optional(Type.String()),
    isTested: Type.Optional(Type.Boolean()),
  }),

  /**
   * The agent has begun to work: its model is called for the first time, or it has reported something itself. Time limits count from here.
   * `cpuWaitMs`: how long its processes had waited for a CPU until then, in total; null: unknown.
   */
  work_began: Type.Object({ startMs: Type.Number({ minimum: 0 }), cpuWaitMs: Nullable(Type.Number({ minimum: 0 })) }),

  /**
   * The machine had too little CPU time for the session. Its processes ran for `ranMs` and waited for a CPU for `waitedMs`, in total: at least half
   * of the time in which they could have run.
   */
  cpu_shortage: Type.Object({ ranMs: Type.Number({ minimum: 0 }), waitedMs: Type.Number({ minimum: 0 }) }),

  /** The cost in USD that a coding agent reports itself; 0 if it knows no price of its model. */
  agent_usage: Type.Object({ costUsd: Type.Number({ minimum: 0 }) }),

  /** A coding agent that does nothing has printed this to its terminal. */
  agent_printed: Type.Object({ text: Type.String() }),

  /** A part of what a coding agent has printed. Only its artifact is stored, not the event itself. */
  agent_output: Type.Object({}),

  /** An attempt of the run failed. `ending`: how the session ended; null: it did not start, or the service ended it. */
  attempt_failed: Type.Object({
    code: OneOf(failedCodes),
    cause: OneOf(failureCauses),
    ending: Nullable(OneOf(Object.keys(endings) as EndingName[])),
    detail: Type.String(),
  }),

  /** The workspace holds what the prompt says, and the agent is about to start. */
  workspace_prepared: Type.Object({
    archive: Nullable(Type.String()),
    repository: Nullable(Type.Object({ url: Type.String(), ref: Type.String(), commit: Type.String() })),
    setup: Nullable(Type.Object({ command: Type.String(), exitCode: Type.Integer(), output: Type.String() })),
    /** Characters of AGENTS.md; 0 without one. */
    instructionChars: Count,
    /** Names of the variables. */
    env: Texts,
    /** `digest`: SHA-256 of the files of a skill. `opening`: a line of its instructions. If it is in a request, the model has read them. */
    skills: Type.Array(
      Type.Object({
        name: Type.String(),
        description: Type.String(),
        digest: Type.String(),
        opening: Type.Optional(Type.String()),
      }),
    ),
    mcpServers: Type.Array(
      Type.Object({ name: Type.String(), url: Nullable(Type.String()), command: Nullable(Type.String()) }),
    ),
  }),

  /** A built docs site in a folder was served in place of the live one. */
  site_served: Type.Object({
    /** The URL that it is published at. */
    at: Type.String(),
    /** SHA-256 of its files. */
    digest: Type.String(),
    files: Count,
    /** Whose rules applied. */
    host: OneOf(siteHosts),
    /** `markdown`: sources of docs, without any page that a build made. */
    form: OneOf(["html", "markdown"]),
    /** The first rules that only the host can apply, and how many there are. */
    notApplied: Texts,
    notAppliedTotal: Count,
  }),

  /** What the model of an agent received of the workspace: the instructions, descriptions of skills, and tools of MCP servers. */
  context_offered: Type.Object({ instructions: Type.Boolean(), skills: Texts, mcpServers: Texts }),

  /** The instructions of a skill, not only its description, were part of a request to the model for the first time. */
  skill_read: Type.Object({ skill: Type.String() }),

  /** The model called a tool of an MCP server of the workspace for the first time. */
  mcp_server_called: Type.Object({ server: Type.String() }),

  /** The agent changed files of its workspace. The diff is the artifact of the event. */
  workspace_changed: Type.Union([
    Type.Object({ files: Count, isCut: Type.Boolean() }),
    Type.Object({ files: Type.Null(), problem: Type.String() }),
  ]),

  /** The words of the goal for which the explorer searches. */
  goal_terms: Type.Object({ terms: Texts }),

  /** A page was read as a document. */
  page_read: Type.Object({
    url: Type.String(),
    chars: Count,
    form: OneOf(["markdown", "html"]),
    title: Type.String(),
    /** Whether it still has the text that the task rests on; absent: the task doesn't rest on this page. */
    basis: Type.Optional(OneOf(["kept", "changed"])),
  }),

  /** A page has the same text as one that was read at another URL. */
  page_repeated: Type.Object({ url: Type.String() }),

  /** The first URLs that an llms.txt or a sitemap lists. `at`: its own URL. */
  pages_listed: Type.Object({ by: OneOf(["llms.txt", "sitemap"]), at: Type.String(), urls: Texts }),

  /** How to correct dead links, as far as the pages that were read show it. */
  dead_links: Type.Object({ edits: Type.Array(LinkEdit) }),

  /** A section contains much of the goal. */
  section_matched: Type.Object(Section),

  /** Where the explorer expects the answer to the goal, or what comes closest. */
  goal_answer: Type.Object({
    state,
    /** How many of `nearest` together contain the answer; 0 if it is unclear. */
    sections: Count,
    /** The best section of each page, best first: usually three pages. */
    nearest: Type.Array(
      Type.Object({
        ...Section,
        title: Type.String(),
        /** The words of the goal that it lacks. */
        missing: Texts,
        /** The words of the goal that occur only as a synonym. */
        synonyms: Type.Array(Type.Object({ word: Type.String(), synonym: Type.String() })),
        /** Number of links between the start page and this one; null: no path is known. */
        clicks: Nullable(Count),
      }),
    ),
    /** How many of `nearest`, the first ones, match the goal about equally well. */
    close: Type.Optional(Count),
    /** The words of the goal that occur in nothing that was read. */
    unseen: Texts,
    /** How well the best section matches the goal, by its text and headings. */
    fit: Share,
    /** `clicks` of the first of `nearest`. */
    clicks: Nullable(Count),
    /** The nearest section contains the words of the goal, but no sample. */
    noSample: Type.Boolean(),
    /** Number of pages that were read. */
    pages: Count,
    /** What ended the search. */
    budget: Type.String(),
    /** The result for each wording of the goal, the goal itself first. */
    wordings: Type.Array(Type.Object({ text: Type.String(), state, fit: Share, url: Nullable(Type.String()) })),
    /** No word of the goal occurs anywhere. If the docs state their language, it is given too. */
    noOverlap: Type.Optional(Type.Boolean()),
    docsLanguage: Type.Optional(Nullable(Type.String())),
    /** The scripts of the goal and of the docs if they differ, such as "Cyrillic" and "Latin". */
    otherScript: Type.Optional(Type.Object({ goal: Type.String(), docs: Type.String() })),
  }),

  /**
   * How often the edits of the run took effect, by their positions. For a hidden URL, it is the number of requests. For a replacement, it is the
   * number of responses with a page, and the number of these in which its text occurred.
   */
  docs_edited: Type.Object({
    hidden: Type.Array(Count),
    replacements: Type.Array(Type.Object({ requests: Count, applied: Count })),
  }),

  /** The service asks a judge about the session. This milestone and the two below come after the agent's end. */
  judging: Type.Object(Assignment),

  /** A judge has answered. `answer` is the text of a model: grading checks it against its own schema and against the session. */
  judged: Type.Object({ ...Assignment, answer: Type.Unknown() }),

  /** There is no usable answer of the judge. */
  not_judged: Type.Object({ ...Assignment, reason: Type.String() }),
} as const;

export type MilestoneName = keyof typeof details;

/** Something that a session has reached. Its name says what `detail` contains. */
export type Milestone<Name extends MilestoneName = MilestoneName> = {
  [N in Name]: { type: "milestone"; name: N; detail: Static<(typeof details)[N]> };
}[Name];

/** What the milestone of this name says. */
export type MilestoneDetail<Name extends MilestoneName> = Milestone<Name>["detail"];

/** A milestone of an unknown name, or without the fields that its name requires. Only people may read it, not code. */
export type UnreadableMilestone = { type: "milestone"; name: null; raw: unknown };

const checks = new Map<string, TypeCheck<(typeof details)[MilestoneName]>>();

/** The compiled check of a milestone's detail. Compiling all of them would delay the start of the service. */
function checkOf(name: MilestoneName): TypeCheck<(typeof details)[MilestoneName]> {
  const check = checks.get(name) ?? TypeCompiler.Compile<(typeof details)[MilestoneName]>(details[name]);
  checks.set(name, check);
  return check;
}

type Fields = { readonly [field: string]: unknown };

/** Checks the fields of a milestone from another process or from the database. */
export function readMilestone<T extends Fields>(fields: T): (T & Milestone) | UnreadableMilestone {
  const { name, detail } = fields;
  const isReadable =
    typeof name === "string" && Object.hasOwn(details, name) && checkOf(name as MilestoneName).Check(detail);
  if (isReadable) return { ...fields, type: "milestone" } as T & Milestone;
  const { type: _, ...stored } = fields;
  const wasUnreadable = name === null && "raw" in stored;
  return { type: "milestone", name: null, raw: wasUnreadable ? stored.raw : stored };
}

/** Maximum number of URLs in one event, and of their characters in total. */
const maxListed = { urls: 300, chars: 20_000 };

/** The URLs listed in an llms.txt or a sitemap, used to find pages that nobody read. */
export function toPagesListedEvent(by: "llms.txt" | "sitemap", at: string, urls: string[]): Milestone<"pages_listed"> {
  const firstUrls = [...new Set(urls.map((url) => url.replace(/#.*$/s, "")))].slice(0, maxListed.urls);
  // Removes the second half until the rest is short enough.
  while (firstUrls.join("").length > maxListed.chars) firstUrls.splice(firstUrls.length / 2);
  return { type: "milestone", name: "pages_listed", detail: { by, at, urls: firstUrls } };
}
