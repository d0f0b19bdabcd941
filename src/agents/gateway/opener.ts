import type { createGateway } from "./gateway.ts";

type Gateway = ReturnType<typeof createGateway>;

/** The one gateway of a service, opened with the first session that needs it, because loading the prices is slow. */
export type GatewayOpener = { open: () => Promise<Gateway>; close: () => Promise<void> };

export function createGatewayOpener(now: () => number): GatewayOpener {
  let gateway: Promise<Gateway> | undefined;
  return {
    open: () => (gateway ??= import("./gateway.ts").then((module) => module.createGateway({ now }))),
    close: async () => (await gateway)?.close(),
  };
}
