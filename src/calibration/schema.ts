import { type Static, Type } from "@sinclair/typebox";
import { calibrationSources, calibrationStatuses, calibrationStops } from "../db/tables/calibrations.ts";
import { CalibrationFigures } from "../reports/calibration.ts";
import { Id, Nullable, OneOf, Time, Url } from "../schema.ts";

export const maxSites = 50;
/** Clean, with defects, and clean once more. */
export const runsPerSite = 3;

export const CalibrationRequest = Type.Object(
  {
    promptId: Type.Optional(
      Type.String({ format: "uuid", description: "Plant into its docs; default: into sites that evald makes" }),
    ),
    agent: Type.Optional(Type.String({ maxLength: 100 })),
    model: Type.Optional(Type.String({ maxLength: 200 })),
    sites: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxSites,
        description: "Each makes 3 runs; default: 12 for the explorer, else 3",
      }),
    ),
    budgetUsd: Type.Optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 100_000, description: "Required for an agent with a model" }),
    ),
    everyDays: Type.Optional(Type.Integer({ minimum: 1, maximum: 365, description: "Repeat it" })),
    dryRun: Type.Optional(Type.Boolean({ description: "Only estimate: nothing is stored" })),
  },
  { title: "CalibrationRequest", examples: [{ agent: "explorer", everyDays: 7 }] },
);
export type CalibrationRequest = Static<typeof CalibrationRequest>;

const figures = ["found", "falseFindings", "falseAlarms"] as const;

/** One that has just been requested. */
const example = {
  id: "0199f3a5-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
  pageUrl: "https://evald.example.com/calibration",
  source: "sites",
  promptId: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11",
  agent: "explorer",
  model: null,
  methodology: null,
  sites: 12,
  budgetUsd: null,
  everyDays: 7,
  nextAt: "2026-11-28T09:30:00.000Z",
  status: "running",
  stopReason: null,
  endedRuns: 0,
  figures: null,
  evidence: [],
  worse: [],
  spentUsd: 0,
  createdAt: "2026-11-21T09:30:00.000Z",
  completedAt: null,
};

export const Calibration = Type.Object(
  {
    id: Id,
    pageUrl: Url,
    source: OneOf(calibrationSources),
    promptId: Id,
    agent: Type.String(),
    model: Nullable(Type.String()),
    methodology: Nullable(Type.String()),
    sites: Type.Integer(),
    budgetUsd: Nullable(Type.Number()),
    everyDays: Nullable(Type.Integer()),
    nextAt: Nullable(Time),
    status: OneOf(calibrationStatuses),
    stopReason: Nullable(OneOf(calibrationStops)),
    endedRuns: Type.Integer(),
    figures: Nullable(CalibrationFigures),
    evidence: Type.Array(Type.Object({ figure: OneOf(figures), what: Type.String(), runId: Id }), {
      description: "What was missed, and each false finding and alarm",
    }),
    worse: Type.Array(OneOf(figures), { description: "Significantly worse than before" }),
    spentUsd: Type.Number(),
    estimate: Type.Optional(
      Type.Object({ runs: Type.Integer(), usd: Nullable(Type.Number()), maxUsd: Nullable(Type.Number()) }),
    ),
    createdAt: Time,
    completedAt: Nullable(Time),
  },
  { title: "Calibration", examples: [example] },
);
export type Calibration = Static<typeof Calibration>;
export type CalibrationEstimate = NonNullable<Calibration["estimate"]>;
