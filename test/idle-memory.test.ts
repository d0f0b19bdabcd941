import { afterEach, expect, jest, spyOn, test } from "bun:test";
import { releaseMemoryWhenIdle } from "../src/cli/idle-memory.ts";

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test("memory is released once after the start, and again when the process is idle after much work, but not after little", () => {
  jest.useFakeTimers();
  let cpuMs = 0;
  spyOn(process, "cpuUsage").mockImplementation(() => ({ user: cpuMs * 1000, system: 0 }));
  let released = 0;
  const timer = releaseMemoryWhenIdle(() => released++, 50);
  const releasesAfter = (workMs: number) => {
    cpuMs += workMs;
    jest.advanceTimersByTime(1000);
    return released;
  };
  expect([releasesAfter(150), releasesAfter(100), releasesAfter(1000), releasesAfter(0)]).toEqual([1, 1, 2, 2]);
  clearInterval(timer);
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
