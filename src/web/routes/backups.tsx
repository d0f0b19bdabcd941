import { Elysia } from "elysia";
import { backUpNow, findBackupState, findBackupWarning, listBackups, maxListed } from "../../backups/backups.ts";
import { locationOf } from "../../config/backup-settings.ts";
import type { Context } from "../../context.ts";
import { watchDatabase } from "../../runs/follow.ts";
import { renderFragment } from "../components/layout.tsx";
import { followTicks } from "../live.ts";
import { showPage, streamPage, submitOrShowAgain } from "../page-requests.tsx";
import { BackupsPage, BackupsPart, type BackupsPartProps } from "../pages/backups.tsx";
import type { FormResult } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { requireOperator, type Viewer } from "../viewer.ts";

function partProps(ctx: Context, site: Site): BackupsPartProps {
  const { backups } = ctx.config;
  return {
    site,
    backups: listBackups(ctx, maxListed),
    schedule: backups && { location: locationOf(backups.to), dueAt: findBackupState(ctx)?.dueAt ?? 0 },
    warning: findBackupWarning(ctx),
    now: ctx.now(),
  };
}

const backupsPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => {
  requireOperator(viewer);
  return <BackupsPage {...{ viewer, ...partProps(ctx, site), ...result }} />;
};

/** The backups of the service. */
export const backupPages = (ctx: Context) =>
  new Elysia({ name: "backup pages" })
    .get("/settings/backups", ({ request }) => showPage(ctx, request, (viewer, site) => backupsPage(ctx, viewer, site)))
    .get("/settings/backups/live", ({ request }) =>
      streamPage(ctx, request, (viewer, site) => {
        // Checked here, so that forbidden is an error of the request and not of its stream.
        requireOperator(viewer);
        const render = () => renderFragment(<BackupsPart {...partProps(ctx, site)} />, viewer);
        return (signal) => followTicks(watchDatabase(ctx, signal), render);
      }),
    )
    .post("/settings/backups", ({ request }) =>
      submitOrShowAgain(ctx, request, "operate", backupsPage, (viewer, _form, site) => {
        requireOperator(viewer);
        backUpNow(ctx, viewer.person.name);
        return backupsPage(ctx, viewer, site, { successMessage: "The backup starts within 5 seconds." });
      }),
    );
