import { version } from "../../package.json" with { type: "json" };
import { type Context, perContext } from "../context.ts";
import { fetchLatestVersion } from "../net/latest-release.ts";
import { createPoll } from "../poll.ts";

const dayMs = 24 * 3600_000;
const retryMs = 3600_000;

/** The newest release that this service has heard of; null until then. */
const latest = perContext((): { version: string | null } => ({ version: null }));

/** The version of a release that is newer than this one; null: there is none, or the operator has not turned the check on. */
export function findNewerVersion(ctx: Context): string | null {
  const newest = latest(ctx).version;
  return newest !== null && Bun.semver.order(newest, version) > 0 ? newest : null;
}

/** Asks once a day for the newest release, and logs each newer one once. `url`: the URL in the settings. */
export const createReleaseCheck = (ctx: Context, url: string) =>
  createPoll({
    async check() {
      const before = findNewerVersion(ctx);
      latest(ctx).version = await fetchLatestVersion(url, ctx.stopping);
      const newer = findNewerVersion(ctx);
      if (newer !== null && newer !== before)
        ctx.log.info({ running: version, newest: newer }, "a newer version is available");
      return dayMs;
    },
    onError: (error) => ctx.log.warn({ err: error }, "could not ask for the newest version"),
    retryMs,
  });
