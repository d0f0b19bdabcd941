import { type Block, escapeHtml, type ForeignPage, type ForeignSite, idOf, type Markup } from "./site.ts";

const navigationLength = 14;

/** The type and the body of a page, as the site serves it. */
export function renderPage(site: ForeignSite, page: ForeignPage): { type: string; body: string } {
  const { markup } = site;
  if (markup.isMarkdown) return { type: "text/markdown; charset=utf-8", body: toMarkdown(page) };
  const title = escapeHtml(page.title);
  const navigation = site.pages
    .slice(0, navigationLength)
    .map((each) => `<li><a href="${each.path}">${escapeHtml(each.title)}</a></li>`)
    .join("");
  const charset = markup.name === "html32" ? "" : `<meta charset="utf-8">`;
  const head = `${charset}<title>${title} - ${site.product.name}</title>${site.head.get(page.path) ?? ""}`;
  const body = page.blocks.map((block) => toHtml(markup, block)).join("\n");
  return {
    type: "text/html; charset=utf-8",
    body: markup.page({ title, product: site.product.name, head, navigation, body }),
  };
}

export const toMarkdown = ({ title, blocks }: ForeignPage): string =>
  `# ${title}\n\n${blocks.map(blockToMarkdown).join("\n\n")}\n`;

function blockToMarkdown(block: Block): string {
  const fence = (language: string | null, code: string) => `\`\`\`${language ?? ""}\n${code}\n\`\`\``;
  switch (block.kind) {
    case "text":
      return block.text;
    case "note":
      return `> **Note:** ${block.text}`;
    case "heading":
      return `${"#".repeat(block.level)} ${block.text}`;
    case "code":
      return fence(block.language, block.code);
    case "list":
      return block.items.map((item) => `- ${item}`).join("\n");
    case "table": {
      const row = (cells: string[]) => `| ${cells.join(" | ")} |`;
      return [row(block.head), row(block.head.map(() => "---")), ...block.rows.map(row)].join("\n");
    }
    case "image":
      return `![${block.alt}](${block.source})`;
    case "tabs":
      return shownTabs(block)
        .map(({ name, language, code }) => `**${name}**\n\n${fence(language, code)}`)
        .join("\n\n");
  }
}

function toHtml(markup: Markup, block: Block): string {
  const link = markup.link ?? ((text: string, href: string) => `<a href="${href}">${text}</a>`);
  const inline = (text: string) =>
    escapeHtml(text).replace(/\[([^\]]+)\]\(([^)]+)\)/g, (_, label: string, href: string) => link(label, href));
  const code = (language: string | null, text: string) => markup.code(language, escapeHtml(text));
  switch (block.kind) {
    case "text":
      return (markup.text ?? ((html) => `<p>${html}</p>`))(inline(block.text));
    case "note":
      return (markup.note ?? plainNote)(inline(block.text));
    case "heading":
      return (markup.heading ?? plainHeading)(block.level, escapeHtml(block.text), idOf(block.text));
    case "code":
      return code(block.language, block.code);
    case "list":
      return `<ul>${block.items.map((item) => `<li>${inline(item)}</li>`).join("\n")}</ul>`;
    case "table":
      return (markup.table ?? plainTable)(
        block.head.map(inline),
        block.rows.map((row) => row.map(inline)),
      );
    case "image":
      return `<p><img src="${block.source}" alt="${block.alt}"></p>`;
    case "tabs":
      return (markup.tabs ?? plainTabs)(
        block.tabs.map(({ name }) => name),
        block.shown ?? 0,
        shownTabs(block).map((tab) => code(tab.language, tab.code)),
      );
  }
}

const shownTabs = ({ tabs, shown }: Extract<Block, { kind: "tabs" }>) =>
  tabs.filter((_, at) => shown === null || at === shown);

const plainNote = (html: string) =>
  `<div class="admonition note"><p class="admonition-title">Note</p><p>${html}</p></div>`;

const plainHeading = (level: number, text: string, id: string) => `<h${level} id="${id}">${text}</h${level}>`;

const plainTable = (head: string[], rows: string[][]) =>
  `<table border="1"><thead><tr>${head.map((cell) => `<th>${cell}</th>`).join("")}</tr></thead><tbody>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`)
    .join("\n")}</tbody></table>`;

const plainTabs = (names: string[], shown: number, panels: string[]) =>
  `<div class="tabs" role="tablist">${names
    .map((name, at) => `<button role="tab" aria-selected="${at === shown}">${name}</button>`)
    .join("")}</div>${panels.map((panel) => `<div role="tabpanel">${panel}</div>`).join("")}`;
