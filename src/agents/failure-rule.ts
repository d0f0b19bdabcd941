export const failureCauses = [
  "timeout",
  "budget",
  "credentials",
  "infrastructure",
  "agent_crashed",
  "cancelled",
] as const;
export type FailureCause = (typeof failureCauses)[number];

/** Why a run ended without a report: it failed, or a newer run replaced it. */
export const endCauses = [...failureCauses, "superseded"] as const;
export type EndCause = (typeof endCauses)[number];

/** A way in which a run ends without a report. */
export type FailureRule = {
  cause: EndCause;
  /** What happened, in a few words. */
  title: string;
  /** What `subject` of the failure is. Absent: it has none. */
  subject?: string;
  /** What to do, in sentences. */
  remedy: string;
  /** A setting or command to copy; `{subject}` stands for the subject. */
  command?: string;
  /**
   * Where to do it: a path of the pages. `{prompt}` stands for the ID of the prompt, and `{subject}` for the subject. `needs`: what a member must be
   * allowed to do on that page; without it, everyone may read the page.
   */
  button?: { label: string; path: string; needs?: "write" | "models" | "organization" };
  /** Whether running it again without any change can succeed. The button for that then comes before this one. Default: false. */
  runAgain?: true;
};

export const editLimits = {
  label: "Edit limits of the prompt",
  path: "/prompts/{prompt}/edit#limits",
  needs: "write",
} as const;
export const editPrompt = { label: "Edit prompt", path: "/prompts/{prompt}/edit", needs: "write" } as const;
export const editWorkspace = {
  label: "Edit workspace of the prompt",
  path: "/prompts/{prompt}/edit#workspace",
  needs: "write",
} as const;
export const openModels = { label: "Open model settings", path: "/settings/models", needs: "models" } as const;
export const openWorkers = { label: "Open workers", path: "/settings/workers" };
export const openBudget = { label: "Change budget", path: "/settings", needs: "organization" } as const;
export const readLimits = { label: "Read about limits", path: "/docs/configuration#limit-runs" };
export const readAgents = { label: "Read about agents", path: "/docs/agents#agents" };
export const address = "Host and port";
export const model = "Model";
export const agent = "Agent";
