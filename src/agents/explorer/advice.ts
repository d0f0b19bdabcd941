/** What to do about a static check that did not pass, by its id. */
export const advice: Record<string, string> = {
  "llms-txt-exists":
    "Publish an llms.txt at the root of the docs: a short list of the pages that matter, each with a link and a sentence.",
  "llms-txt-valid":
    "Begin llms.txt with one # heading and a > summary, and list pages as Markdown links under ## headings.",
  "llms-txt-size":
    "Keep each llms.txt under 50,000 characters: split it by area and link the parts from the first one.",
  "llms-txt-links-resolve":
    "Correct or drop the links in llms.txt that lead nowhere, and test them whenever the docs are built.",
  "llms-txt-links-markdown": "Let llms.txt link to the Markdown of its pages, not to their HTML.",
  "llms-txt-directive-html": "Tell readers of the HTML pages, near the top, that there is an llms.txt and where.",
  "llms-txt-directive-md": "Tell readers of the Markdown pages, near the top, that there is an llms.txt and where.",
  "markdown-url-support": "Serve every page as Markdown too, under its own address with .md at the end.",
  "content-negotiation":
    "Answer requests that accept text/markdown with the Markdown of the page, and label it text/markdown.",
  "rendering-strategy": "Render pages on the server or when they are built: the text must be in the HTML that is sent.",
  "page-size-markdown": "Split the longest pages: over 50,000 characters of Markdown an agent begins to lose the end.",
  "page-size-html": "Make the pages lighter: what is left of the HTML as text should stay under 50,000 characters.",
  "page-size-transfer": "Send less with each page: inline data, styles and scripts belong into files of their own.",
  "single-fetch-completeness": "Send the whole page with one request, or link to the rest in a way that works.",
  "content-start-position": "Move what the page is about to its top: navigation and banners come first now.",
  "tabbed-content-serialization": "Give what stands in tabs fewer variants per page, or pages of their own.",
  "section-header-quality":
    "Name the variant in headings inside of tabs, so that they can be told apart outside of them.",
  "markdown-code-fence-validity": "Close every code fence: after an open one the rest of the page reads as code.",
  "markdown-link-portability":
    "Write links in Markdown pages as full addresses, so that they work wherever the page is read.",
  "embedded-data-serialization": "Move large tables and data out of the pages into files that the pages link to.",
  "http-status-codes": "Answer addresses that do not exist with status 404, not with a page and a status of success.",
  "redirect-behavior": "Redirect by HTTP status and within the same host; scripts and meta tags are not followed.",
  "llms-txt-coverage": "Add the pages to llms.txt that it leaves out.",
  "markdown-content-parity": "Make the Markdown of a page say all that its HTML says.",
  "cache-header-hygiene": "Let caches ask again after an hour or so: readers should not get outdated pages.",
  "auth-gate-detection": "Let docs be read without a sign-in.",
  "auth-alternative-access":
    "Offer the docs behind the sign-in in another way too: a public copy, a package, a server for agents.",
  "bot-protection-interference": "Let programs that read the docs at a modest rate pass the bot protection.",
};
