/** An error page has one heading, and its site may add another one. */
const maxErrorHeadings = 2;
const maxErrorChars = 3000;
/** Titles or first headings of error pages in common languages. */
const errorTitles = [
  /^\W*(error\W*)?404\W*$/i,
  /^\W*(error\W*)?404\b.{0,12}\b(not found|error)\W*$/i,
  /^\W*not found\W*$/i,
  /^\W*(the )?(page|seite|document|file)( was| could| you requested (was|could))? ?(not|nicht)( be)? (found|gefunden)\b/i,
  /page (doesn.t|does not|no longer) exists?/i,
  /(can|could)( ?not|n.t) (find|be found)/i,
  /^page introuvable/i,
  /^p[aá]gina no encontrada/i,
  /^pagina non trovata/i,
  /^ページが見つかりません/,
  /^(页面|頁面)(不存在|未找到|找不到)|^找不到(页面|頁面)/,
];

type PageContent = {
  title: string;
  markdown: string;
  headings: { text: string }[];
  samples: unknown[];
  isUnlisted: boolean;
};

/** Whether a page says that there is no page at its URL, by its title or its only headings. */
export function isErrorPage({ title, markdown, headings, samples }: PageContent): boolean {
  if (samples.length > 0 || markdown.length > maxErrorChars) return false;
  // A page with more sections is a page about errors.
  const heading = headings.length <= maxErrorHeadings ? (headings[0]?.text ?? "") : "";
  // Sites put their name behind the title.
  const [ownTitle = ""] = title.slice(0, 200).split(/\s[|·–—-]\s/);
  return [ownTitle, heading].some((each) => errorTitles.some((errorTitle) => errorTitle.test(each.trim())));
}

/**
 * The problem of an error page with a success status. Some hosts send such a page on purpose to help agents, which don't read the text of a 404. It
 * suggests other pages, and asks not to be listed.
 */
export const problemOfErrorPage = ({ isUnlisted, markdown }: PageContent): "missing" | "soft_404" =>
  isUnlisted && markdown.includes("](") ? "missing" : "soft_404";
