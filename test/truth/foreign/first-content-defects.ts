import { answerOf, type Block, codeOf, type Defect, type ForeignPage, type Planted, pageAt } from "./site.ts";

const text = (content: string): Block => ({ kind: "text", text: content });

/** Kinds of defects of the content of pages. */
export const firstContentDefects: Record<string, Defect> = {
  no_install: {
    promised: true,
    products: ["sdk-python", "sdk-ruby", "sdk-rust"],
    plant(site) {
      pageAt(site, "install").blocks = [text("Ask your administrator.")];
      return { path: site.answer, categories: ["missing_docs"], words: /install/i };
    },
  },
  wrong_package: {
    promised: true,
    products: ["sdk-js", "sdk-python", "sdk-ruby"],
    plant(site) {
      const [sample] = codeOf(pageAt(site, "install"));
      sample!.code = sample!.code.replace(site.product.package, `${site.product.package}-client-js`);
      const words = /install|package/i;
      return { path: site.answer, categories: ["missing_docs", "misleading_docs", "wrong_contract"], words };
    },
  },
  image_only: {
    promised: true,
    plant(site) {
      answerOf(site).blocks = [
        text("Follow the picture:"),
        { kind: "image", source: "/steps.png", alt: "" },
        { kind: "image", source: "/steps2.png", alt: "steps" },
      ];
      const words = /image|picture|sample|text|section|closest/i;
      return { path: site.answer, categories: ["unreadable_page", "missing_docs"], words };
    },
  },
  code_screenshot: {
    promised: false,
    plant(site) {
      const page = answerOf(site);
      page.blocks = page.blocks.map((block) =>
        block.kind === "code" ? { kind: "image", source: "/code.png", alt: "code" } : block,
      );
      const words = /image|screenshot|sample/i;
      return { path: site.answer, categories: ["unreadable_page", "missing_docs"], words };
    },
  },
  page_5mb: {
    promised: false,
    plant(site) {
      answerOf(site).blocks.unshift(text("The history of this feature is long. ".repeat(140_000)));
      const words = /large|long|size|MB|heavy|characters/i;
      return { path: site.answer, categories: ["unreadable_page", "slow", "other"], words };
    },
  },
  contradiction: {
    promised: false,
    plant(site) {
      answerOf(site).blocks.push(
        { kind: "heading", level: 2, text: "Limits" },
        text("The limit is 900 calls a minute."),
      );
      return { path: site.answer, categories: ["misleading_docs"], words: /900|contradict|40 calls/i, line: "900" };
    },
  },
  deprecated_first: {
    promised: false,
    plant(site) {
      const answer = answerOf(site);
      const old: ForeignPage = {
        path: site.answer.replace("guides/", "guides/old-"),
        title: answer.title,
        blocks: [
          { kind: "note", text: "Deprecated: this guide is for version 1, which is no longer supported." },
          ...structuredClone(answer.blocks),
        ],
      };
      site.pages.splice(4, 0, old);
      const list = site.pages[0]!.blocks.find((block) => block.kind === "list");
      list!.items.unshift(`[${old.title}](${old.path})`);
      return { path: old.path, categories: ["misleading_docs"], words: /deprecat|old/i };
    },
  },
  steps_order: {
    promised: false,
    plant(site) {
      const page = pageAt(site, "quickstart");
      const heading = (content: string): Block => ({ kind: "heading", level: 2, text: content });
      page.blocks = [
        heading("Step 1: Run the first call"),
        ...codeOf(page).slice(0, 1),
        heading("Step 3: Set the token"),
        text("Now set the token."),
        heading("Step 2: Install"),
        text("Then install the client."),
      ];
      return { path: page.path, categories: ["misleading_docs", "other"], words: /order|step/i };
    },
  },
  broken_table: {
    promised: false,
    plant(site) {
      const { blocks } = answerOf(site);
      const broken = site.markup.isMarkdown
        ? "| Name | Type | Meaning\n|---|\n| id | string\nlabel | string | The label to use |"
        : "| Name | Type | Meaning | |---|---|---| | id | string | The item |";
      blocks[blocks.findIndex(({ kind }) => kind === "table")] = text(broken);
      const categories: Planted["categories"] = ["unreadable_page", "broken_sample", "other", "misleading_docs"];
      return { path: site.answer, categories, words: /table/i };
    },
  },
  tabs_hidden: {
    promised: false,
    products: ["sdk-python", "sdk-js", "sdk-php"],
    except: ["markdown"],
    plant(site) {
      const { blocks } = answerOf(site);
      const [sample] = codeOf(answerOf(site));
      const language = sample!.language!;
      blocks[blocks.indexOf(sample!)] = {
        kind: "tabs",
        shown: 1,
        tabs: [
          { name: language, language, code: sample!.code },
          { name: "Cobol", language: "cobol", code: "CALL 'ITEM'." },
        ],
      };
      return { path: site.answer, categories: ["unreadable_page", "missing_docs"], words: /tab|hidden|script/i };
    },
  },
  coming_soon: {
    promised: false,
    plant(site) {
      const page = pageAt(site, "authentication");
      page.blocks = [text("Coming soon.")];
      const words = /coming soon|stub|short|TOKEN|empty/i;
      return { path: page.path, categories: ["missing_docs", "unreadable_page", "silent_failure"], words };
    },
  },
  todo_left: {
    promised: false,
    plant(site) {
      const { blocks } = answerOf(site);
      blocks.splice(2, blocks.length - 2, text("TODO: describe this."));
      return { path: site.answer, categories: ["missing_docs"], words: /./ };
    },
  },
  answer_removed: {
    promised: true,
    plant(site) {
      const stays = (path: string) => path !== site.answer;
      site.pages = site.pages.filter(({ path }) => stays(path));
      for (const { blocks } of site.pages)
        for (const block of blocks)
          if (block.kind === "list") block.items = block.items.filter((item) => !item.includes(`(${site.answer})`));
      site.llmsTxt = site.llmsTxt?.filter(stays) ?? null;
      site.sitemap = site.sitemap?.filter(stays) ?? null;
      return { path: "", categories: ["missing_docs"], words: /no section|not|closest/i };
    },
  },
};
