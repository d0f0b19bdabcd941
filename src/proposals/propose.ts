import type { ProposalPage, ProposalResult, ProposalSource, TaskProposal } from "./proposal.ts";

const verb =
  /^(add|back up|build|call|configure|connect|convert|create|deploy|export|import|install|log|migrate|publish|read|restore|run|send|set up|start|test|upload|use|validate|write)\b/i;

/** Proposes the headings of pages that ask for something to be done. */
export function proposeTasks(source: ProposalSource): ProposalResult {
  const proposals = source.pages.flatMap((page) => proposalsOf(page, source)).slice(0, source.count);
  return { proposals, dropped: [] };
}

function proposalsOf(page: ProposalPage, { product, docsUrl }: ProposalSource): TaskProposal[] {
  const lines = page.markdown.split("\n");
  return page.headings
    .filter(({ text }) => verb.test(text))
    .map(({ text, line }) => ({
      title: text,
      text: `${text} with ${product}.`,
      endGoal: `${text} works.`,
      additionalUrls: [{ url: docsUrl }],
      tags: ["docs"],
      declaredChecks: [],
      hints: [],
      needs: [],
      by: "rules",
      source: { url: page.url, line, quote: lines[line - 1] ?? text },
      docsOwnWords: true,
      why: "heading",
    }));
}
