import type { Deps } from "../deps.ts";

/** The address of the service: `baseUrl` for texts that leave the browser, `base` (its path, empty or `/evals`) for links in a page. */
export type Site = { baseUrl: string; base: string };

export const toSite = ({ baseUrl, config }: Pick<Deps, "baseUrl" | "config">): Site => ({
  baseUrl: baseUrl(),
  base: config.basePath,
});
