import type { Outcome, Provenance } from "../agents/agent.ts";
import type { MilestoneDetail } from "../agents/milestones.ts";
import type {
  evidenceGrades,
  evidenceRoles,
  frictionCategories,
  partNames,
  phases,
  scopes,
  severities,
  units,
} from "./kinds.ts";

export type Scope = (typeof scopes)[number];
export type EvidenceGrade = (typeof evidenceGrades)[number];
export type PartName = (typeof partNames)[number];

/**
 * What a session must have done to meet a friction point, in the syntax of `hasReached`: "run", "goal", "check ID SUBJECT",
 * "tool NAME", "requested PAGE", "read PAGE", and "tested PAGE" (read by a session that tested everything it read). All of
 * them are required.
 */
export type Preconditions = string[];

/** One thing that got in an agent's way, with the events that prove it. */
export type Friction = {
  /** 16 hex digits, identical for the same problem in other runs. */
  fingerprint: string;
  severity: (typeof severities)[number];
  phase: (typeof phases)[number];
  category: (typeof frictionCategories)[number];
  title: string;
  description: string;
  /** Quoted from the target, untrusted; at most 300 characters. */
  quote: string | null;
  url: string | null;
  /** Whether the agent met it, or the goal depends on its page; false: seen elsewhere in the docs. */
  onPath: boolean;
  /** Sequence numbers of events; never empty. */
  events: number[];
  lostSeconds: number | null;
  lostUsd: number | null;
  /** Points of the score that it cost, one decimal; null if it affected nothing that was measured. */
  lostPoints: number | null;
  /** A session that didn't meet all of them says nothing about it. */
  preconditions: Preconditions;
};

/** A recommended fix. */
export type Recommendation = {
  /** 1 to n without gaps, highest priority first. */
  priority: number;
  title: string;
  /** What to change, and where. */
  action: string;
  /** Whether it is only a convention that helps agents. Its absence got in no agent's way. */
  isConvention: boolean;
  url: string | null;
  /** Fingerprints; never empty. */
  frictions: string[];
  /** Points that the score would gain without these friction points, one decimal; null if they affected nothing that was measured. */
  expectedGain: number | null;
  /** The minimum and maximum, if the gain depends on what was not measured; null like `expectedGain`. */
  gain: { low: number; high: number } | null;
  /**
   * The points of `lost.fixes` that it wins back after the fixes before it, one decimal. Together, those of a report never exceed
   * `lost.fixes`. null without a score, and for reports from before it was measured.
   */
  lostPoints: number | null;
  /** Where to change what, as far as events show it. */
  evidence: TextChange | null;
};

/** The current text and its replacement: the URL or command that worked after one that failed. */
export type TextChange = {
  /** The page to change, and the line in the text that the agent read. */
  url: string | null;
  line: number | null;
  found: string | null;
  expected: string | null;
  /** The whole line that contains `found`; null if it isn't known. */
  text: string | null;
  /** How the session shows it, in order. Empty if only the events of the friction points show it. */
  steps: EvidenceStep[];
};

/** An event about a request or page, `what`. The page was read, or the request failed, was guessed without success, or worked. */
export type EvidenceStep = {
  role: (typeof evidenceRoles)[number];
  event: number;
  what: string;
  status: number | null;
};

/** The fields of `metrics` in a report. */
export type Metrics = {
  time: string;
  timeDetail: string;
  timeSeconds: number | null;
  errors: number;
  errorsDetail: string;
  toolCalls: number;
  toolCallsDetail: string;
  cost: string;
  costDetail: string;
  costUsd: number | null;
  /** The cost with an estimate for each call that did not fully report its usage; absent if there is none. */
  estimatedUsd?: number;
  interruptions: number;
};

/**
 * The score of a value: 100 up to `best`, `floor` from `worst` on; in between, the same loss per unit (`linear`) or per
 * doubling (`log`), or the square root of the distance from `best` (`root`).
 */
export type Curve = { best: number; worst: number; floor: number; scale: "linear" | "log" | "root" };

/** One measurement of a dimension. */
export type DimensionPart = {
  name: PartName;
  /** In `unit`. */
  value: number;
  unit: (typeof units)[number];
  /** null: the score doesn't depend on the value alone. */
  curve: Curve | null;
  /** 0 to 100, one decimal. */
  score: number;
  /** Its share of the dimension, 0 to 1. */
  weight: number;
  /** The counts behind the value, by name. */
  counts: Readonly<Record<string, number>>;
};

/** `weight` is the share of the score, 0 to 1; `unmeasured` are parts without evidence, whose weight is split among the others. */
export type Dimension = {
  name: string;
  weight: number;
  score: number;
  grade: string;
  parts: DimensionPart[];
  unmeasured: PartName[];
};

/**
 * Who is responsible for the points missing to 100; the four add up to `total`. `fixes`: the docs or the product could
 * change. `agent`: the agent's own mistakes. `network`: slow or missing responses. `unmeasured`: not assigned to anyone
 * by events.
 */
export type LostPoints = { total: number; fixes: number; agent: number; network: number; unmeasured: number };

/** One part of the end goal, and whether it is proven. */
export type JudgedPart = {
  text: string;
  met: "yes" | "no" | "unclear";
  /** What supports the judge's claim. `judged`: only the judge itself, so `met` is unclear. null: it makes no claim. */
  evidence: EvidenceGrade | null;
  events: number[];
  quote: string | null;
  why: string;
};

/** The judge of a report. `costUsd` null: unknown. */
export type JudgeSummary = {
  model: string;
  costUsd: number | null;
  inputTokens: number;
  outputTokens: number;
  calls: number;
  /** 0 to 1, by the judge's own estimate; null if it gave no usable answer. */
  confidence: number | null;
  parts: JudgedPart[];
  /** Claims that were dropped because no event proves them. */
  dropped: string[];
  /** What to know before relying on it; null if nothing. */
  notice: string | null;
};

/** What a session did with one page. `page` is its page key, `url` one URL under which it was requested. */
export type Visit = {
  page: string;
  url: string;
  reads: number;
  /** Number of requests without a usable response, and number of such requests whose URL was guessed. */
  misses: number;
  guesses: number;
  /** Reads followed by a failure before the next page was read. */
  errors: number;
  /** How the URLs of the answered requests were found. */
  found: Partial<Record<Provenance, number>>;
};

/** Where a page that an agent might read is listed. */
export type ListedPage = { page: string; url: string; by: "llms.txt" | "sitemap" | "link" };

/** What a session reached: everything that it could have met. */
export type Exposure = {
  visits: Visit[];
  listed: ListedPage[];
  /** Everything else that was done, without duplicates: "run", "goal", "check ID SUBJECT", "tool NAME". */
  done: string[];
  /** Whether no limit ended the run. */
  isComplete: boolean;
  /** Whether the agent is rule-based: in a complete run, it has tested every page that it read. */
  byRules: boolean;
};

/**
 * Several wordings of one goal, tested on the same pages, the goal itself first. `fit`, 0 to 1, is how well the nearest
 * section matches; `spread` is the difference between the highest and the lowest.
 */
export type Wordings = {
  spread: number;
  results: { text: string; state: "likely" | "unclear"; fit: number; url: string | null }[];
};

/** Samples in a language that can't be parsed, so nothing is known about them. `language`: their label. */
export type UncheckedSamples = { language: string; samples: number };

/** A skill or MCP server. `isOffered`: whether the model received its description; null: unknown. `uses`: calls of its tools, or of the skill. */
type ContextPart = { name: string; isOffered: boolean | null; uses: number };

/** Built docs that were read in place of the live ones. */
type ServedSite = MilestoneDetail<"site_served">;

/** What an agent was given besides its task, and what it used. */
export type Context = {
  /** AGENTS.md. `isUsed`: whether it was in a request to the model; null: unknown. */
  instructions: { chars: number; isUsed: boolean | null } | null;
  skills: ContextPart[];
  mcpServers: ContextPart[];
  /** Names of environment variables. */
  env: string[];
  sites: ServedSite[];
  /** How often the edits of the run were met, by their positions; absent: it had none. */
  edits?: MilestoneDetail<"docs_edited">;
};

/** Everything that a session's events say about the target. The same events produce the same object. */
export type Grade = {
  outcome: Outcome;
  /** What the score measures. */
  scope: Scope;
  /** What shows the outcome, as the weakest of its proofs; null: nothing was tested, or the agent itself says that it missed the goal. */
  evidence: EvidenceGrade | null;
  score: number | null;
  /** Only if the scope is `goal`. */
  grade: string | null;
  /** Why there is no score; null if there is one. */
  nullNotice: string | null;
  keyFinding: string;
  verdict: string;
  summary: { whatWorked: string; whatDidnt: string };
  metrics: Metrics;
  dimensions: Dimension[];
  /** null if there is no score. */
  lost: LostPoints | null;
  /** What each wording of the goal finds; null with only one. */
  wordings: Wordings | null;
  /** Samples that weren't checked, most first; empty if all were, or if the agent checks none. */
  notChecked: UncheckedSamples[];
  /** 0 to 1: the share of the weights that was measured. */
  coverage: number;
  methodology: { id: string; hash: string; judge: string | null };
  /** The judge's result, apart from what the run itself did and cost; null: no judge was used. */
  judge: JudgeSummary | null;
  frictions: Friction[];
  recommendations: Recommendation[];
  exposure: Exposure;
  /** What the agent was given besides its task; null if nothing. */
  context: Context | null;
};
