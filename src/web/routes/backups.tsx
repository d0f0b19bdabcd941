import { Elysia } from "elysia";
import { backUpNow, findBackupState, findBackupWarning, listBackups, maxListed } from "../../backups/backups.ts";
import { locationOf } from "../../config/backup-settings.ts";
import type { Context } from "../../context.ts";
import type { Message } from "../../http/event-stream.ts";
import { watchDatabase } from "../../runs/follow.ts";
import { renderFragment } from "../components/layout.tsx";
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

/** Streams the part of the page that updates live. */
async function* followBackups(ctx: Context, viewer: Viewer, site: Site, signal: AbortSignal) {
  let lastHtml = "";
  for await (const _ of watchDatabase(ctx, signal)) {
    const data = renderFragment(<BackupsPart {...partProps(ctx, site)} />, viewer);
    if (data !== lastHtml) yield { data } satisfies Message;
    lastHtml = data;
  }
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
        // Forbidden is an error of the request, not of its stream.
        requireOperator(viewer);
        return (signal) => followBackups(ctx, viewer, site, signal);
      }),
    )
    .post("/settings/backups", ({ request }) =>
      submitOrShowAgain(ctx, request, "operate", backupsPage, (viewer, _form, site) => {
        requireOperator(viewer);
        backUpNow(ctx, viewer.person.name);
        return backupsPage(ctx, viewer, site, { successMessage: "The backup starts within 5 seconds." });
      }),
    );
