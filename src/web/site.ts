import type { Context } from "../context.ts";
import { type Theme, themeOf } from "./theme.ts";

/**
 * What a page needs to know of the service and the browser: `baseUrl` for texts that leave the browser, `base` (its path, empty or `/evals`)
 * for links in a page, and the color scheme.
 */
export type Site = { baseUrl: string; base: string; theme: Theme };

/** `request`: of the browser that shows the page. */
export const toSite = ({ baseUrl, config }: Context, request?: Request): Site => ({
  baseUrl: baseUrl(),
  base: config.basePath,
  theme: request ? themeOf(request) : "system",
});
