/**
 * Normalizes a URL so that all forms of a page compare equal: `/a`, `/a/`, `/a.md`, `/a/index.html`, `//a`. The query is kept and sorted. The
 * fragment is dropped. A string that is not an absolute URL is returned as it is.
 */
export function pageKey(text: string): string {
  const url = URL.parse(text);
  if (url === null) return text;
  url.searchParams.sort();
  const path = url.pathname
    .replace(/\/{2,}/g, "/")
    .replace(/\/$/, "")
    .replace(/\.(html?|mdx?)$/i, "")
    .replace(/\/index$/i, "");
  return `${url.protocol}//${url.host}${path}${url.search}`;
}
