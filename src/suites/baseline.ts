import type { SuiteSlot } from "../db/tables/suites.ts";
import type { Suite } from "./schema.ts";

/** The versions of the built-in suite. A text never changes within a version: results are only comparable with the same words. */
const version1: SuiteSlot[] = [
  {
    slot: "discover",
    title: "Find out what {{product}} can do",
    text: "Find out whether {{product}} can {{primaryTask}}. Write what to install or call, its current version and whether an account is needed to answer.json.",
    endGoal: null,
    declaredChecks: [{ file: "answer.json", contains: "{{packageName}}" }],
  },
  {
    slot: "onboard",
    title: "Get started with {{product}}",
    text: "Get started with {{product}} and run the smallest thing that shows that it works.",
    endGoal: null,
    declaredChecks: [{ command: "{{versionCommand}}" }],
  },
  {
    slot: "core",
    title: "Do the main task with {{product}}",
    text: "Use {{product}} to {{primaryTask}}.",
    endGoal: null,
    declaredChecks: [],
  },
  {
    slot: "errors",
    title: "Recover from an error of {{product}}",
    text: "Use {{product}} to {{primaryTask}}, at first with {{invalidInput}}. Say what is wrong and mend it.",
    endGoal: null,
    declaredChecks: [],
  },
  {
    slot: "cleanup",
    title: "Clean up after {{product}}",
    text: "Use {{product}} to {{primaryTask}}. Then remove everything that you created.",
    endGoal: null,
    declaredChecks: [],
  },
];

/** The values of the built-in suite's variables if a product has none of its own. */
export const defaultValues: Record<string, string> = { invalidInput: "a required value left out" };

/** Five tasks, in the same words for every product. */
export const baseline: Suite = {
  id: "baseline",
  version: 1,
  title: "Baseline",
  slots: version1,
  limits: null,
  agents: null,
};
