import type { ScheduledEvaluation } from "../schedules/schema.ts";

export const outcomeLabels: Record<ScheduledEvaluation["outcome"], string> = {
  ran: "Ran",
  missed: "Missed",
  skipped_overlap: "Skipped",
  failed: "Failed",
  waiting: "Waiting",
};

export const catchUpLabels = [
  ["automatic", "Run the latest one, if it is not too late"],
  ["latest", "Run the latest one, however late"],
  ["window", "Run the latest one within hours"],
  ["skip", "Skip it"],
] as const;

export const overlapLabels = [
  ["skip", "Skip it"],
  ["queue", "Wait until it has ended"],
  ["allow", "Run it anyway"],
] as const;
