/** Whether a URL is a search, or another view of a page, from which sites keep programs on purpose. */
export const isView = (url: string): boolean => (URL.parse(url)?.search ?? "") !== "";

const extension = /[^/]\.([a-z][a-z\d]{0,9})$/i;
const pageExtension = /^(?:[xs]?html?|php\d?|aspx?|jspx?|cgi|mdx?|markdown|adoc|rst|txt)$/i;

/** Whether a URL names a file that is no page, such as a notebook to download. */
export function isOtherFile(url: string): boolean {
  const [, name] = extension.exec(URL.parse(url)?.pathname ?? "") ?? [];
  return name !== undefined && !pageExtension.test(name);
}
