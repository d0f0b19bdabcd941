import { expect, test } from "bun:test";
import kept from "../fixtures/fuzz-seeds.json" with { type: "json" };
import { fuzz } from "../support/fuzz.ts";

const isLong = process.env.ATTACK === "long";
const fresh = Date.now() % 1_000_000_007;
const count = isLong ? 50_000 : 1_000;

// `bun test/support/fuzz.ts --seed SEED --count COUNT` repeats one. If a seed finds a bug, add it to fuzz-seeds.json.
test.each([...kept, { seed: fresh, count }])(
  "random requests derived from openapi.json get responses that it describes: $seed",
  async ({ seed, count }) => {
    const { wrong, requests, checked, statuses } = await fuzz({ seed, count });
    console.log(`fuzz: seed ${seed}, ${requests} requests, ${checked} bodies checked, ${JSON.stringify(statuses)}`);
    expect(wrong).toEqual([]);
    expect(requests).toBe(count);
  },
  3_600_000,
);
