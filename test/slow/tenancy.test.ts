import { expect, test } from "bun:test";
import { findLeaks } from "../support/tenancy.ts";

test("no request reads or changes data of another organization, and the work of one is invisible to others", async () => {
  const { wrong, counts } = await findLeaks();
  const { reads, foreign, own } = counts;
  console.log(
    `tenancy: ${foreign} probes with IDs of another organization, ${own} changes of one's own, ${reads} answers compared`,
  );
  expect(wrong).toEqual([]);
  expect(foreign + own).toBeGreaterThanOrEqual(600);
  expect(reads).toBeGreaterThanOrEqual(300);
}, 300_000);
