import type { Site } from "../site.ts";
import { themes } from "../theme.ts";

const names = { system: "System", light: "Light", dark: "Dark" };

/** Chooses the color scheme. `path`: of this page, to return to. */
export const ThemeSwitch = ({ site: { base, theme }, path }: { site: Site; path: string }) => (
  <form class="theme" method="post" action={`${base}/theme`} aria-label="Color scheme">
    <input type="hidden" name="from" value={path} />
    {themes.map((each) => (
      <button key={each} type="submit" name="theme" value={each} aria-pressed={each === theme}>
        {names[each]}
      </button>
    ))}
  </form>
);
