/** `refused`: it is of another version. */
export const workerStates = ["ready", "draining", "refused"] as const;
