import { readPage } from "../../../src/agents/page.ts";
import type { Friction, Recommendation } from "../../../src/grading/grade.ts";
import { type Explored, explore } from "../session.ts";
import { renderPage } from "./render.ts";
import { plant, type Round, siteFor } from "./rounds.ts";
import { serveSite } from "./server.ts";
import { type ForeignSite, type Planted, pageAt } from "./site.ts";

/** What the report about one planted defect says of it. */
export type Outcome = {
  kind: string;
  nth: number;
  markup: string;
  product: string;
  found: boolean;
  /** Whether its category fits. */
  named: boolean;
  /** Whether the fix names the right line; null if the defect has none or wasn't found. */
  line: boolean | null;
  /** Whether its fix is the first one, apart from site conventions. */
  firstFix: boolean;
  /** Scores of the clean and the defective site. */
  scores: [number, number];
  severity: string | null;
  /** Titles of the friction point, or of all new ones if none is about the defect. */
  said: string[];
};

/** Explores a site and grades the session. Titles and texts have paths instead of URLs. */
export async function exploreForeign(site: ForeignSite): Promise<Explored["grade"]> {
  const { url, stop } = serveSite(site);
  try {
    const { grade } = await explore(`${url}/`, site.goal);
    return JSON.parse(JSON.stringify(grade).replaceAll(url, ""));
  } finally {
    stop();
  }
}

/** Plants one defect on a clean site, and compares the reports before and after. */
export async function measureDefect(round: Round, kind: string, nth: number): Promise<Outcome> {
  const before = await exploreForeign(siteFor(round, kind, nth));
  const site = siteFor(round, kind, nth);
  const planted = plant(round, site, kind, nth);
  const after = await exploreForeign(site);
  const known = new Set(before.frictions.map(contentOf));
  const added = after.frictions.filter((friction) => !known.has(contentOf(friction)));
  const friction = added
    .filter((each) => isAbout(each, planted))
    .sort((a, b) => rankOf(a, planted) - rankOf(b, planted))[0];
  const fix = after.recommendations.find(({ frictions }) => frictions.includes(friction?.fingerprint ?? ""));
  return {
    kind,
    nth,
    markup: site.markup.name,
    product: site.product.kind,
    found: friction !== undefined,
    named: friction !== undefined && planted.categories.includes(friction.category),
    line: friction && planted.line ? isRightLine(site, fix, planted) : null,
    firstFix: fix !== undefined && after.recommendations.find((each) => !isConvention(each)) === fix,
    scores: [before.score ?? 0, after.score ?? 0],
    severity: friction?.severity ?? null,
    said: friction ? [friction.title] : added.map(({ severity, title }) => `${severity}: ${title}`),
  };
}

/** A fix of the site as a whole, which has its own place in a report. */
const isConvention = ({ title }: Recommendation) => /conventions/i.test(title);

const contentOf = ({ category, title, description }: Friction) => category + title + description;

function isAbout(friction: Friction, { path, words }: Planted): boolean {
  const text = [friction.url, friction.title, friction.description, friction.quote].join(" ");
  return text.includes(path) && words.test(text);
}

const severities = ["critical", "high", "medium", "low"];
const rankOf = ({ category, severity }: Friction, { categories }: Planted) =>
  (categories.includes(category) ? 0 : severities.length) + severities.indexOf(severity);

/** Whether a fix names the faulty line, as it is in the text that the agent read. */
function isRightLine(site: ForeignSite, fix: Recommendation | undefined, { line, sample }: Planted): boolean {
  const named = fix?.evidence?.line;
  const page = pageAt(site, site.answer);
  if (!named || !fix.evidence?.url?.includes(page.path)) return false;
  const { type, body } = renderPage(site, page);
  const lines = readPage(`http://docs.test${page.path}`, type, body).markdown.split("\n");
  const first = lines.findIndex((each) => each.includes(line!)) + 1;
  if (!sample) return lines[named - 1]?.includes(line!) || Math.abs(named - first) <= 1;
  const last = lines.findIndex((each, at) => at >= first && /^```\s*$/.test(each)) + 1;
  return named >= first - 1 && named <= last + 1;
}
