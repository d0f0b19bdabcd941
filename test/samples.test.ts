import { expect, test } from "bun:test";
import { type Case, cases, contract as hollow } from "./samples/cases.ts";
import { freshCases } from "./samples/fresh-cases.ts";
import { freshUnlabelledCases } from "./samples/fresh-unlabelled-cases.ts";
import { laterCases } from "./samples/later-cases.ts";
import { unlabelledCases } from "./samples/unlabelled-cases.ts";
import { serveSite } from "./support/site.ts";
import { explore } from "./truth/session.ts";

const ids = new Set([
  "sample-parses",
  "sample-matches-api",
  "prerequisite-explained",
  "placeholder-explained",
  "sdk-version-matches",
  "command-copyable",
]);

/** The checks about samples that fail on the pages of a case. */
async function findingsOf({ pages, contract = hollow }: Case): Promise<string[]> {
  const site = serveSite({
    ...Object.fromEntries(
      Object.entries(pages).map(([path, text]) => [
        path,
        { body: text, type: text.startsWith("<") ? "text/html" : "text/markdown" },
      ]),
    ),
    "/openapi.json": { body: JSON.stringify(contract) },
  });
  const { events } = await explore(`${site.url}/`, "Create a widget").finally(site.stop);
  const checks = events.flatMap((event) => (event.type === "tool_result" ? (event.checks ?? []) : []));
  return [...new Set(checks.filter(({ id, share }) => ids.has(id) && share < 1).map(({ id }) => id))].sort();
}

test.each([...cases, ...freshCases, ...unlabelledCases, ...freshUnlabelledCases, ...laterCases])(
  "samples: $name",
  async (docs) => {
    expect(await findingsOf(docs)).toEqual(docs.finds);
  },
);
