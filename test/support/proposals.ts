import { eq } from "drizzle-orm";
import { jobs } from "../../src/db/tables/jobs.ts";
import { proposalSets } from "../../src/db/tables/proposals.ts";
import type { TaskProposal } from "../../src/proposals/proposal.ts";
import type { testApp } from "./app.ts";

const proposal: TaskProposal = {
  title: "Back up a folder",
  text: "Back up a folder with Acme.",
  endGoal: "A folder was backed up.",
  additionalUrls: [{ url: "https://docs.acme.dev/" }],
  tags: ["docs"],
  declaredChecks: [],
  checksNotRun: null,
  hints: [],
  needs: [],
  by: "rules",
  source: { url: "https://docs.acme.dev/backup", line: 12, quote: "To back up a folder, run acme backup." },
  docsOwnWords: true,
  why: "sentence",
};

/** Proposals of every kind. */
export const demoProposals: TaskProposal[] = [
  proposal,
  {
    ...proposal,
    title: "Install the command line client",
    text: "Install the command line client of Acme.",
    endGoal: "acme is installed and prints its version.",
    declaredChecks: [{ command: "npm ls acme" }],
    needs: ["workspace"],
    source: { url: "https://docs.acme.example/install", line: 7, quote: "Install the client with `npm i acme`." },
    docsOwnWords: false,
  },
  {
    ...proposal,
    title: "Invite a colleague",
    text: "Invite a colleague to an Acme team.",
    endGoal: "The colleague has received an invitation.",
    by: "model",
    why: "model",
    needs: ["account", "approval"],
    source: {
      url: "https://docs.acme.example/teams/members",
      line: 31,
      quote: "Owners invite people by their email address. An invitation is valid for seven days, and can be revoked.",
    },
  },
  {
    ...proposal,
    title: "Rotate keys",
    text: "Find out how Acme supports “rotate keys”, and try it.",
    endGoal: "It is clear from the docs of Acme how to do this, or that it can't be done: rotate keys.",
    tags: ["asked-for"],
    hints: ["Agents guessed this URL 12 times; it doesn't exist"],
    by: "demand",
    why: "guessed_url",
    source: {
      url: "https://docs.acme.example/rotate-keys",
      line: 1,
      quote: "https://docs.acme.example/rotate-keys",
    },
    docsOwnWords: false,
  },
];

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
