import { pageKey } from "../../net/page-key.ts";
import type { CheckResult } from "../facts.ts";
import { readingChecks } from "../kinds.ts";
import { normalizedLine, normalizeUrl } from "../text.ts";

/** If at least this many pages have the same problem in a link or a sample, it has one cause: a template or a repeated text. */
const minPages = 3;
/** The minimum for problems of whole pages, which say less about their cause. At least half of the pages must have such a problem, too. */
const minWholePages = 5;

/**
 * Groups failed checks by their cause. A group has the same problem on several pages, such as a link in a menu, a copied sample, or something that
 * most pages lack. `allChecks`: all checks that the session made.
 */
export function groupByCause(failed: CheckResult[], allChecks: CheckResult[]): CheckResult[][] {
  const checksById = Map.groupBy(allChecks, ({ id }) => id);
  return [...Map.groupBy(failed, causeKey).values()].flatMap((group) => {
    const pages = countPages(group);
    const check = group[0]!;
    const isOnHalfOfPages = () => pages >= countPages(checksById.get(check.id) ?? []) / 2;
    const isShared = isInText(check)
      ? pages >= minPages
      : check.group === "page" && pages >= minWholePages && isOnHalfOfPages();
    return isShared ? [group] : group.map((check) => [check]);
  });
}

const countPages = (checks: CheckResult[]): number => new Set(checks.map(({ url }) => pageKey(url))).size;

/** Whether a check is about a link or a sample on a page, rather than the page. */
const isInText = ({ id, group }: CheckResult): boolean =>
  group === "link" || group === "sample" || readingChecks.has(id);

/** Equal for checks that fail for the same reason: links by their text and the folder of their target, samples by their text. */
function causeKey(check: CheckResult): string {
  const { id, group, url, subject, quote, message } = check;
  const site = URL.parse(url)?.origin ?? "";
  if (!isInText(check)) return JSON.stringify([id, site]);
  if (quote === null) return check.key;
  if (group !== "sample") return JSON.stringify([id, site, normalizedLine(quote), topFolderOf(subject)]);
  return JSON.stringify([id, site, normalizedLine(quote), normalizedLine(message)]);
}

function topFolderOf(address: string): string {
  const url = URL.parse(normalizeUrl(address));
  if (url === null) return address;
  const [, first = "", ...rest] = url.pathname.split("/");
  return `${url.origin}/${rest.length > 0 ? first : ""}`;
}
