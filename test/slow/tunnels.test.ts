import { afterAll } from "bun:test";
import { testGuard } from "../support/guard-cases.ts";
import { createProxiedGuard } from "../support/proxied-guard.ts";

const stops: (() => void)[] = [];
afterAll(() => stops.map((stop) => stop()));

testGuard((options) => {
  const { guard, stop } = createProxiedGuard(options);
  stops.push(stop);
  return guard;
});
