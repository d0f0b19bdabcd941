import type { Outcome, Provenance } from "../agents/agent.ts";
import type { frictionCategories, partNames, phases, scopes, severities, units } from "./kinds.ts";

export type Scope = (typeof scopes)[number];
export type PartName = (typeof partNames)[number];

/**
 * The place of a friction, as words that `cameBy` understands: "run", "goal", "check ID SUBJECT", "tool NAME", "asked PAGE", "read PAGE", and
 * "tested PAGE" (read by a session that tested all that it read). All of them must have been reached.
 */
export type Grounds = string[];

/** One thing that stood in an agent's way, with the events that prove it. */
export type Friction = {
  /** 16 hex; the same thing in another run has the same one. */
  fingerprint: string;
  severity: (typeof severities)[number];
  phase: (typeof phases)[number];
  category: (typeof frictionCategories)[number];
  title: string;
  description: string;
  /** The target's own words, untrusted; at most 300 characters. */
  quote: string | null;
  url: string | null;
  /** Sequence numbers of events; never empty. */
  events: number[];
  lostSeconds: number | null;
  lostUsd: number | null;
  /** Points of the score that it cost, one decimal; null where it cost no measured number. */
  lostPoints: number | null;
  /** Where it stands; a session that never came there says nothing about it. */
  grounds: Grounds;
};

export type Recommendation = {
  /** 1..n without gaps, 1 first. */
  priority: number;
  title: string;
  /** What to change, and where. */
  action: string;
  url: string | null;
  /** Fingerprints; never empty. */
  frictions: string[];
  /** Points that the score would gain without its frictions, one decimal; null where they cost no measured number. */
  expectedGain: number | null;
  /** The least and the most, where the gain depends on what was not measured; null as `expectedGain`. */
  gain: { low: number; high: number } | null;
  /** Where to change what, as far as events show it. */
  evidence: Evidence | null;
};

/** What stands somewhere, and what should: the address or command that worked after the one that failed. */
export type Evidence = { url: string | null; line: number | null; found: string | null; expected: string | null };

/** The fields of report.metrics in the specification, to the letter. */
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
  interruptions: number;
};

/** What a value is worth: 100 up to `best`, `floor` from `worst` on; between them the same loss for every step, or for every doubling. */
export type Curve = { best: number; worst: number; floor: number; scale: "linear" | "log" };

/** One thing measured inside a dimension. */
export type DimensionPart = {
  name: PartName;
  /** In `unit`. */
  value: number;
  unit: (typeof units)[number];
  /** null: the score is no function of the value alone. */
  curve: Curve | null;
  /** 0 to 100, one decimal. */
  score: number;
  /** Its share of the dimension, 0 to 1. */
  weight: number;
  /** The numbers behind the value, by the name of what was counted. */
  counts: Readonly<Record<string, number>>;
};

/** `weight` is the share of the score, 0 to 1; `unmeasured` are parts without evidence, whose weight the others share. */
export type Dimension = {
  name: string;
  weight: number;
  score: number;
  grade: string;
  parts: DimensionPart[];
  unmeasured: PartName[];
};

/**
 * Who the points are owed by that a score lacks to 100; the four add up to `total`. `fixes`: what the docs or the product could change.
 * `agent`: what the agent did to itself. `network`: slow or missing answers. `unmeasured`: what no event assigns to anybody.
 */
export type LostPoints = { total: number; fixes: number; agent: number; network: number; unmeasured: number };

/** One part of the end goal, as far as it is proven. */
export type JudgedPart = {
  text: string;
  met: "yes" | "no" | "unclear";
  events: number[];
  quote: string | null;
  why: string;
};

/** What a report says of its judge. `costUsd` null: unknown. */
export type Judged = {
  model: string;
  costUsd: number | null;
  inputTokens: number;
  outputTokens: number;
  calls: number;
  /** 0 to 1, by the judge's own word; null where it gave no answer that can be used. */
  confidence: number | null;
  parts: JudgedPart[];
  /** Claims that were left out because no event proves them. */
  dropped: string[];
  /** What to know before relying on it; null if nothing. */
  notice: string | null;
};

/** What a session had to do with one page. `page` is the one spelling of its address, `url` one in which it was asked for. */
export type Visit = {
  page: string;
  url: string;
  reads: number;
  /** Requests that brought nothing, and those of them whose address was guessed. */
  misses: number;
  guesses: number;
  /** Reads after which something failed before the next page was read. */
  errors: number;
  /** How the addresses of the requests that were answered were found. */
  found: Partial<Record<Provenance, number>>;
};

/** Where a page is named that an agent might read. */
export type Listed = { page: string; url: string; by: "llms.txt" | "sitemap" | "link" };

/** How far a session came: what it could have met, had it been there. */
export type Exposure = {
  visits: Visit[];
  listed: Listed[];
  /** Everything else that was done, each thing once: "run", "goal", "check ID SUBJECT", "tool NAME". */
  done: string[];
  /** An agent by rules tests every page that it reads, unless a limit ended the run. */
  isComplete: boolean;
  byRules: boolean;
};

/** Everything that a session's events say about the target; the same events give the same object. */
export type Grade = {
  outcome: Outcome;
  /** What the score is of. */
  scope: Scope;
  score: number | null;
  /** Only where the scope is `goal`. */
  grade: string | null;
  /** Why there is no score; null where there is one. */
  nullNotice: string | null;
  keyFinding: string;
  verdict: string;
  summary: { whatWorked: string; whatDidnt: string };
  metrics: Metrics;
  dimensions: Dimension[];
  /** null where there is no score. */
  lost: LostPoints | null;
  /** 0 to 1: the share of the weights that was measured. */
  coverage: number;
  methodology: { id: string; hash: string; judge: string | null };
  /** What a model said of the session, apart from what the run itself did and cost; null: none was asked. */
  judge: Judged | null;
  frictions: Friction[];
  recommendations: Recommendation[];
  exposure: Exposure;
};
