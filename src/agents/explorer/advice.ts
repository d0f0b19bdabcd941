/** What to do about a static check that didn't pass, by its ID. */
export const advice: Record<string, string> = {
  "llms-txt-exists":
    "Publish an llms.txt at the root of the docs: a short list of the most important pages, each with a link and a description.",
  "llms-txt-valid":
    "Start llms.txt with one # heading and a > summary, and list pages as Markdown links under ## headings.",
  "llms-txt-size":
    "Keep each llms.txt under 50,000 characters: split it by area and link the parts from the first one.",
  "llms-txt-links-resolve": "Fix or remove the dead links in llms.txt, and test its links in every docs build.",
  "llms-txt-links-markdown": "In llms.txt, link to the Markdown version of each page instead of its HTML.",
  "llms-txt-directive-html": "Link to llms.txt near the top of each HTML page.",
  "llms-txt-directive-md": "Link to llms.txt near the top of each Markdown page.",
  "markdown-url-support": "Also serve every page as Markdown, at its URL with .md added.",
  "content-negotiation":
    "If a request accepts text/markdown, return the page as Markdown with the content type text/markdown.",
  "rendering-strategy": "Render pages on the server or at build time, so that the HTML response contains the text.",
  "page-size-markdown": "Split the longest pages. Beyond 50,000 characters of Markdown, agents may miss the end.",
  "page-size-html": "Make the pages shorter. Converted to text, the HTML should stay under 50,000 characters.",
  "page-size-transfer": "Make pages smaller. Move inline data, styles and scripts to separate files.",
  "single-fetch-completeness": "Return the whole page in one response, or link to the rest with working links.",
  "content-start-position": "Move the content to the top of the page. Navigation and banners currently come first.",
  "tabbed-content-serialization": "Use fewer tabs per page, or move the variants to separate pages.",
  "section-header-quality":
    "Include the variant in headings inside tabs, so that they stay distinguishable without the tabs.",
  "markdown-code-fence-validity": "Close every code fence. Otherwise, the rest of the page is treated as code.",
  "markdown-link-portability":
    "Use absolute URLs for links in Markdown pages, so that they work wherever the page is read.",
  "embedded-data-serialization": "Move large tables and data to separate files, and link to them.",
  "http-status-codes": "Return status 404 for URLs that do not exist, not a page with status 200.",
  "redirect-behavior":
    "Redirect with an HTTP status and within the same host. Agents may not follow scripts and meta tags.",
  "llms-txt-coverage": "Add the missing pages to llms.txt.",
  "markdown-content-parity": "Make sure that the Markdown version of a page has the same content as its HTML.",
  "cache-header-hygiene": "Limit caching to about an hour, so that readers don't get outdated pages.",
  "auth-gate-detection": "Make the docs readable without signing in.",
  "auth-alternative-access":
    "Also offer the docs without sign-in, for example as a public copy, a package or an MCP server.",
  "bot-protection-interference": "Configure the bot protection to allow programs that read the docs at a modest rate.",
};
