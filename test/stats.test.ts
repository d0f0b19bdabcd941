import { expect, test } from "bun:test";
import { meanInterval, median, permutationTest, tQuantile, welch, wilson } from "../src/grading/stats.ts";

const rounded = (value: number | null, digits = 2) => (value === null ? null : Number(value.toFixed(digits)));

// Newcombe, Statistics in Medicine 17 (1998) 857–872, table I, has 81/263, 15/148, 0/20 and 1/29; the rest is the formula by hand.
test.each([
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
  [3, 3, 0.4385, 1],
  [4, 5, 0.3755, 0.9638],
  [10, 10, 0.7225, 1],
])("Wilson's interval of %d of %d", (k, n, low, high) => {
  const interval = wilson(k, n);
  expect([rounded(interval.low, 4), rounded(interval.high, 4)]).toEqual([low, high]);
  expect(interval.value).toBe(k / n);
});

test.each([
  [1, 12.706],
  [2, 4.303],
  [4, 2.776],
  [9, 2.262],
  [19, 2.093],
  [30, 2.042],
  [120, 1.98],
])("the 97.5 %% point of t with %d degrees of freedom, as in every table", (freedom, t) => {
  expect(rounded(tQuantile(0.975, freedom), 3)).toBe(t);
});

test("the mean of scores has an interval from two runs on, and never leaves 0 to 100", () => {
  expect(meanInterval([80])).toEqual({ value: 80, low: null, high: null });
  // 4.303 × 5 / √3 = 12.42
  const three = meanInterval([70, 75, 80]);
  expect([three.value, rounded(three.low), rounded(three.high)]).toEqual([75, 62.58, 87.42]);
  expect(meanInterval([90, 100]).high).toBe(100);
  expect(meanInterval([50, 50])).toEqual({ value: 50, low: 50, high: 50 });
});

test("Welch's interval of the data that textbooks use for it", () => {
  // R: t.test(extra ~ group, data = sleep): −3.3654832 to 0.2054832 for group 1 minus group 2.
  const one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2];
  const two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
  const { value, low, high } = welch(one, two);
  expect([rounded(value, 4), rounded(low, 4), rounded(high, 4)]).toEqual([1.58, -0.2055, 3.3655]);
});

test.each([
  [3, 0.1],
  [4, 0.029],
  [5, 0.008],
])("%d runs against as many that are all lower have the least p there is", (n, p) => {
  const low = Array.from({ length: n }, (_, i) => i);
  const test = permutationTest(
    low,
    low.map((value) => value + 50),
  );
  expect([rounded(test.p, 3), rounded(test.smallest, 3), test.exact]).toEqual([p, p, true]);
});

test("a permutation test counts ties, unequal sides, and draws where there are too many splits, each time alike", () => {
  expect(permutationTest([1, 1], [1, 1]).p).toBe(1);
  expect(permutationTest([0, 1], [5, 6, 7])).toEqual({ p: 0.1, smallest: 0.1, exact: true, splits: 10 });
  const a = Array.from({ length: 12 }, (_, i) => 60 + i);
  const drawn = permutationTest(
    a,
    a.map((value) => value + 20),
  );
  expect([drawn.exact, drawn.splits, drawn.p]).toEqual([false, 20_000, 1 / 20_001]);
  expect(
    permutationTest(
      a,
      a.map((value) => value + 2),
    ),
  ).toEqual(
    permutationTest(
      a,
      a.map((value) => value + 2),
    ),
  );
});

test("the permutation test cries wolf in at most one of twenty comparisons of what is the same", () => {
  let state = 7;
  const random = () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
  const run = () => 70 + 8 * Math.sqrt(-2 * Math.log(random() || 1e-9)) * Math.cos(2 * Math.PI * random());
  const five = () => Array.from({ length: 5 }, run);
  const alarms = Array.from({ length: 2000 }, () => permutationTest(five(), five()).p < 0.05).filter(Boolean).length;
  // 5 % of 2,000 and three standard errors.
  expect(alarms).toBeLessThan(130);
  expect(alarms).toBeGreaterThan(20);
});

test("the median", () => {
  expect([median([]), median([3]), median([4, 1, 3]), median([4, 1, 3, 2])]).toEqual([null, 3, 3, 2.5]);
});
