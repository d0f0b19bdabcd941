import { expect, spyOn, test } from "bun:test";
import { once } from "../src/once.ts";

const failed = (work: Promise<unknown>) => work.then(() => false).catch(() => true);

test("work is done once, and again after a failure", async () => {
  let calls = 0;
  const get = once(async () => {
    if (++calls === 1) throw new Error("too many open files");
    return calls;
  });
  expect(await failed(get())).toBe(true);
  expect([await get(), await get(), calls]).toEqual([2, 2, 2]);
});

test("a result that isn't final is kept for a minute", async () => {
  let calls = 0;
  const clock = spyOn(performance, "now").mockReturnValue(0);
  const get = once(
    async () => ++calls,
    (result) => result > 1,
  );
  expect([await get(), await get()]).toEqual([1, 1]);
  clock.mockReturnValue(59_999);
  expect(await get()).toBe(1);
  clock.mockReturnValue(60_000);
  expect(await get()).toBe(2);
  clock.mockReturnValue(1e9);
  expect([await get(), calls]).toEqual([2, 2]);
  clock.mockRestore();
});
