import { availableParallelism } from "node:os";

/**
 * Lets twice as many processes start at once as there are processors, in the order of the requests. All at once, each would start as late as
 * the last one. One per processor would get less than half of the CPU time beside the service and many sessions in progress, because Linux
 * divides it by process. Resolves to a function to call once, when the process has started.
 */
export function createStarts(most = 2 * availableParallelism()): () => Promise<() => void> {
  let starting = 0;
  const waiting: (() => void)[] = [];
  const leave = () => {
    starting--;
    waiting.shift()?.();
  };
  return () =>
    new Promise((resolve) => {
      const enter = () => {
        starting++;
        resolve(leave);
      };
      if (starting < most) enter();
      else waiting.push(enter);
    });
}
