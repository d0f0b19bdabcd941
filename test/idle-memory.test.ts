import { afterEach, expect, jest, spyOn, test } from "bun:test";
import { releaseMemoryWhenIdle } from "../src/cli/idle-memory.ts";

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** How often memory is released in 20 checks of an idle process that has used this much CPU time, in milliseconds. */
function releasesAfter(workMs: number): number {
  spyOn(process, "cpuUsage").mockReturnValue({ user: workMs * 1000, system: 0 });
  let released = 0;
  const timer = releaseMemoryWhenIdle(() => released++, 50);
  jest.advanceTimersByTime(1000);
  clearInterval(timer);
  return released;
}

test("memory is released once when the process becomes idle after much work, and not after little", () => {
  jest.useFakeTimers();
  expect([releasesAfter(1000), releasesAfter(0)]).toEqual([1, 0]);
});

test("memory is not released during work", () => {
  jest.useFakeTimers();
  let user = 0;
  spyOn(process, "cpuUsage").mockImplementation(() => {
    user += 20_000;
    return { user, system: 0 };
  });
  let released = 0;
  const timer = releaseMemoryWhenIdle(() => released++, 50);
  jest.advanceTimersByTime(5000);
  clearInterval(timer);
  expect(released).toBe(0);
});
