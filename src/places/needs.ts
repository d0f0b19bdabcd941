import type { WorkerInfo } from "./messages.ts";
import type { PlaceOrder } from "./place.ts";

/** What a worker must have to run a session. */
export type Needs = { agent: string; sandbox: boolean; labels: readonly string[] };

/** A workspace can't be set up and commands can't be checked without a sandbox. Only agents with a model have either. */
export const needsOf = ({ agent, task, model, labels }: PlaceOrder): Needs => ({
  agent,
  sandbox:
    model !== null &&
    (task.workspace !== undefined ||
      task.declaredChecks.some(({ command, file }) => command !== undefined || file !== undefined)),
  labels,
});

/** Whether a worker has everything. */
export const fits = ({ agent, sandbox, labels }: Needs, info: WorkerInfo): boolean =>
  agent in info.agents && (!sandbox || info.sandbox.isHere) && labels.every((label) => info.labels.includes(label));

/** Why no worker can run a session. `workers`: how many are connected. */
export function objectionTo({ agent, sandbox, labels }: Needs, workers: number): string {
  if (workers === 0) return "no worker is connected";
  const parts = [
    `the agent ${agent}`,
    ...(sandbox ? ["a sandbox"] : []),
    ...(labels.length > 0 ? [`${labels.length === 1 ? "the label" : "the labels"} ${labels.join(", ")}`] : []),
  ];
  const all = new Intl.ListFormat("en").format(parts);
  return `${workers === 1 ? "the connected worker does not have" : `none of the ${workers} connected workers has`} ${all}`;
}
