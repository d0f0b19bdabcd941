import { toAssignment } from "../llm/instructions.ts";
import type { Task } from "../task.ts";

/** The prompt of a coding agent: the task, and what it can't know about its environment. */
export const toPrompt = (task: Task): string =>
  [
    toAssignment(task),
    "Nobody is available to answer questions. Work in the current directory. Only the hosts of the task and package registries are reachable. When you are done, or cannot get any further, summarize what you did and the result.",
  ].join("\n\n");
