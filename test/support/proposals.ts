import { eq } from "drizzle-orm";
import { jobs } from "../../src/db/tables/jobs.ts";
import { proposalSets } from "../../src/db/tables/proposals.ts";
import type { TaskProposal } from "../../src/proposals/proposal.ts";
import type { testApp } from "./app.ts";

export const proposal: TaskProposal = {
  title: "Back up a folder",
  text: "Back up a folder with Acme.",
  endGoal: "A folder was backed up.",
  additionalUrls: [{ url: "https://docs.acme.dev/" }],
  tags: ["docs"],
  declaredChecks: [],
  hints: [],
  needs: [],
  by: "rules",
  source: { url: "https://docs.acme.dev/backup", line: 12, quote: "To back up a folder, run acme backup." },
  docsOwnWords: true,
  why: "sentence",
};

/** Completes a set with proposals, without reading docs. */
export function completeProposals(
  { db, service }: ReturnType<typeof testApp>,
  id: string,
  proposals = [proposal],
): void {
  const completedAt = service.ctx.now();
  db.update(jobs).set({ state: "done", completedAt }).where(eq(jobs.subject, id)).run();
  db.update(proposalSets)
    .set({ status: "completed", pages: 3, readMs: 1200, costUsd: 0, proposals, dropped: [], completedAt })
    .where(eq(proposalSets.id, id))
    .run();
}
