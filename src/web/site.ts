import type { Context } from "../context.ts";

const cookieName = "evald.theme";

/** Color schemes to choose from. `system`: the color scheme of the browser. */
export const themes = ["system", "light", "dark"] as const;

type Theme = (typeof themes)[number];

/** The color scheme that a browser has chosen; `system` by default. */
function themeOf(request: Request): Theme {
  const [, value] = /(?:^|;\s*)evald\.theme=(\w+)(?:;|$)/.exec(request.headers.get("cookie") ?? "") ?? [];
  return themes.find((theme) => theme === value) ?? "system";
}

/** The cookie that stores the color scheme for a year. Unknown values count as `system`, which needs no cookie. */
export function themeCookie(base: string, value: string | null): string {
  const theme = themes.find((each) => each === value) ?? "system";
  const age = theme === "system" ? 0 : 365 * 24 * 60 * 60;
  return `${cookieName}=${theme}; Path=${base}/; Max-Age=${age}; HttpOnly; SameSite=Lax`;
}

/**
 * What a page needs to know about the service and the browser. `baseUrl`: for texts that leave the browser. `base`: for links in a page; the path of
 * `baseUrl`, which is empty or for example `/evals`. `theme`: the color scheme.
 */
export type Site = { baseUrl: string; base: string; theme: Theme };

/** `request`: from the browser that shows the page. */
export const toSite = ({ baseUrl, config }: Context, request?: Request): Site => ({
  baseUrl: baseUrl(),
  base: config.basePath,
  theme: request ? themeOf(request) : "system",
});
