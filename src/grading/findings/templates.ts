import { pageKey } from "../../net/page-key.ts";
import type { CheckResult } from "../facts.ts";
import { flat, normalizeAddress } from "../text.ts";

/** Pages with the same problem from which on it has one cause: a template or a repeated text. */
const minPages = 3;
/** Of problems that are not in a link or a sample, which say less about their cause. */
const minPagesOfSite = 5;

/**
 * Failed checks by cause. One group: the same problem on several pages, such as a link in a menu, a copied sample, or something that
 * most pages lack. `counted`: all checks of the session that were made.
 */
export function groupByCause(failed: CheckResult[], counted: CheckResult[]): CheckResult[][] {
  const pagesById = new Map(
    [...Map.groupBy(counted, ({ id }) => id)].map(([id, checks]) => [id, countPages(checks)] as const),
  );
  return [...Map.groupBy(failed, causeKey).values()].flatMap((group) => {
    const pages = countPages(group);
    const { id, group: kind } = group[0]!;
    const isTemplate =
      kind === "link" || kind === "sample"
        ? pages >= minPages
        : kind === "page" && pages >= Math.max(minPagesOfSite, (pagesById.get(id) ?? 0) / 2);
    return isTemplate ? [group] : group.map((check) => [check]);
  });
}

const countPages = (checks: CheckResult[]): number => new Set(checks.map(({ url }) => pageKey(url))).size;

/** Equal for checks that fail for the same reason: links by their text and the folder of their target, samples by their text. */
function causeKey(check: CheckResult): string {
  const { id, group, url, subject, quote, message } = check;
  const site = URL.parse(url)?.origin ?? "";
  if (quote === null && group !== "page") return check.key;
  if (group === "link") return JSON.stringify([id, site, flat(quote ?? ""), topFolderOf(subject)]);
  if (group === "sample") return JSON.stringify([id, site, flat(quote ?? ""), flat(message)]);
  return JSON.stringify([id, site]);
}

function topFolderOf(address: string): string {
  const url = URL.parse(normalizeAddress(address));
  if (url === null) return address;
  const [, first = "", ...rest] = url.pathname.split("/");
  return `${url.origin}/${rest.length > 0 ? first : ""}`;
}
