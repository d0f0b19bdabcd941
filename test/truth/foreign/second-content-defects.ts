import {
  answerOf,
  type Block,
  changeCode,
  codeOf,
  type Defect,
  type ForeignSite,
  type Planted,
  pageAt,
} from "./site.ts";

const text = (content: string): Block => ({ kind: "text", text: content });
const setup = "manual/setup";
const keys = "manual/keys";
/** Products whose requests are shown in shell, in JavaScript and in Python. */
const withRequests = ["service", "node", "python"];

/** The first request of the answering page contradicts the API description. */
const contradicting = (change: (code: string) => string, words: RegExp, line: string): Defect => ({
  promised: true,
  products: withRequests,
  plant(site) {
    const request = codeOf(sectionOf(site)).find(({ code }) => code.includes("/api/v3/"))!;
    const changed = change(request.code);
    if (changed === request.code) throw new Error(`The change did nothing to:\n${changed}`);
    request.code = changed;
    return { path: answerOf(site).path, categories: ["wrong_contract"], words, line };
  },
});

/** The section that answers the goal, as a page. */
function sectionOf(site: ForeignSite): { path: string; title: string; blocks: Block[] } {
  const page = answerOf(site);
  const from = page.blocks.findIndex((block) => block.kind === "heading" && block.text === site.goal);
  const to = page.blocks.findIndex((block, at) => at > from && block.kind === "heading");
  return { ...page, blocks: page.blocks.slice(from, to) };
}

/** Changes the client sample of the answering section. */
function changeSample(site: ForeignSite, change: (code: string) => string): void {
  const [sample] = codeOf(sectionOf(site));
  const changed = change(sample!.code);
  if (changed === sample!.code) throw new Error(`The change did nothing to:\n${changed}`);
  sample!.code = changed;
}

const secret = (site: ForeignSite) => `${site.product.package.toUpperCase()}_WEBHOOK_PEPPER`;
/** How a language reads a variable, after what it follows. */
const readers: Record<string, (code: string, name: string) => string> = {
  js: (code, name) => code.replace("  return", `  api.seal(process.env["${name}"]);\n  return`),
  ts: (code, name) => `${code}\n\napi.seal(process.env.${name}!);`,
  python: (code, name) => code.replace("        print(", `        api.seal(os.environ.get("${name}"))\n        print(`),
  php: (code, name) => code.replace("\n\nforeach", `\n$api->seal($_SERVER['${name}']);\n\nforeach`),
  ruby: (code, name) => code.replace(/\n\n(?=\w+\.changes)/, `\napi.seal(ENV.fetch("${name}"))\n\n`),
  rust: (code, name) => code.replace("    println!", `    api.seal(&std::env::var("${name}")?);\n    println!`),
  go: (code, name) => code.replace("\tdefer", `\tapi.Seal(os.Getenv("${name}"))\n\tdefer`),
  csharp: (code, name) =>
    code.replace("\n\nforeach", `\napi.Seal(Environment.GetEnvironmentVariable("${name}"));\n\nforeach`),
  java: (code, name) =>
    code.replace("            System", `            api.seal(System.getenv("${name}"));\n            System`),
  bash: (code, name) => code.replace(" \\\n", ` \\\n  --header "Pepper: $\{${name}}" \\\n`),
};
const missingSecret = (products: string[]): Defect => ({
  promised: true,
  products,
  plant(site) {
    const name = secret(site);
    changeSample(site, (code) => readers[site.product.language]!(code, name));
    return { path: answerOf(site).path, categories: ["missing_docs"], words: /WEBHOOK_PEPPER/, line: name };
  },
});

/** Kinds of defects of what pages say. */
export const secondContentDefects: Record<string, Defect> = {
  api_method: contradicting(
    (code) => {
      // A PATCH is of the item itself, which can be deleted as well.
      const method = /patch/i.test(code) ? "POST" : "DELETE";
      return code
        .replace(/--request \w+/, `--request ${method}`)
        .replace(/method: "\w+"/, `method: "${method}"`)
        .replace(/requests\.\w+\(/, `requests.${method.toLowerCase()}(`);
    },
    /DELETE|POST/i,
    "api/v3",
  ),
  api_path: contradicting((code) => code.replace(/(\/api\/v3\/[\w-]+)\//, "$1/items/"), /path|items/i, "/items/"),
  api_query: contradicting((code) => code.replace(/(\/api\/v3\/[\w/-]+)/, "$1?notify=all"), /notify/i, "notify=all"),
  api_auth_header: contradicting(
    (code) => code.replace(/"(Authorization|\w+-Key)(": |: )(f?[`"])?(Bearer )?/, '"X-Session$2$3'),
    /X-Session|auth|header|key/i,
    "X-Session",
  ),
  api_field: contradicting(
    (code) => code.replace(/"(title|until|project|visitors|reason)":/, '"new_$1":'),
    /new_/,
    "new_",
  ),
  api_type: contradicting(
    (code) => code.replace(/"(title|until|project|visitors|reason)":("?[\w-]+"?)/, '"$1":[$2]'),
    /type|string|integer|array/i,
    ":[",
  ),
  version_mismatch: {
    promised: true,
    products: ["service", "typescript", "ruby"],
    plant(site) {
      for (const sample of codeOf(answerOf(site))) sample.code = sample.code.replaceAll("/api/v3/", "/api/v1/");
      const words = /v1|version|path/i;
      return { path: answerOf(site).path, categories: ["wrong_contract", "misleading_docs"], words, line: "/api/v1/" };
    },
  },
  version_mismatch_sdk: {
    promised: false,
    products: ["node", "go", "rust"],
    plant(site) {
      const { package: id, language } = site.product;
      if (language === "go")
        for (const sample of codeOf(answerOf(site))) sample.code = sample.code.replace("/go/v3", "/go/v1");
      else
        answerOf(site).blocks.splice(
          1,
          0,
          text("Get the client first:"),
          language === "js"
            ? { kind: "code", language: "sh", code: `npm install @${id}/client@1` }
            : { kind: "code", language: "toml", code: `[dependencies]\n${id}-client = "1.4"` },
        );
      const words = /version|v1|@1|1\.4|major/i;
      return { path: answerOf(site).path, categories: ["wrong_contract", "misleading_docs", "missing_docs"], words };
    },
  },
  placeholder: {
    promised: false,
    products: ["service", "node", "console"],
    plant(site, nth) {
      const placeholder = ["<project-ref>", "YOUR_TEAM_SLUG", "{{region}}"][nth % 3]!;
      changeSample(site, (code) => code.replace("k7-0031", placeholder));
      const categories: Planted["categories"] = ["missing_docs", "broken_sample", "misleading_docs"];
      return {
        path: answerOf(site).path,
        categories,
        words: new RegExp(placeholder.replace(/\W/g, ".")),
        line: placeholder,
      };
    },
  },
  missing_secret: missingSecret(["node", "python", "service"]),
  missing_secret_other: missingSecret(["go", "php", "ruby", "rust", "dotnet", "jvm", "typescript"]),
  wrong_package: {
    promised: true,
    products: ["node", "python", "rust", "php", "go"],
    plant(site) {
      const { package: id } = site.product;
      const other = `${id}kit`;
      for (const block of pageAt(site, setup).blocks) {
        if (block.kind === "code") block.code = block.code.replaceAll(id, other);
        if (block.kind === "tabs") for (const tab of block.tabs) tab.code = tab.code.replaceAll(id, other);
      }
      const words = /install|package|import|module|crate/i;
      return { path: "", categories: ["missing_docs", "misleading_docs", "wrong_contract"], words };
    },
  },
  no_install: {
    promised: true,
    products: ["go", "ruby", "typescript", "php"],
    plant(site) {
      const page = pageAt(site, setup);
      page.blocks = [text("Use whatever package manager you like best. Your colleagues surely know how.")];
      return { path: "", categories: ["missing_docs"], words: /install/i };
    },
  },
  renamed_function: {
    promised: false,
    products: ["node", "python", "ruby"],
    plant(site) {
      changeSample(site, (code) => code.replace(/s\.(\w+)\("k7/, 's.do_$1("k7'));
      const categories: Planted["categories"] = ["wrong_contract", "misleading_docs", "broken_sample"];
      return { path: answerOf(site).path, categories, words: /do_/, line: "do_" };
    },
  },
  missing_import: {
    promised: false,
    products: ["node", "python", "jvm"],
    plant(site) {
      changeSample(site, (code) =>
        code
          .split("\n")
          .filter((line) => !/^(import|from) /.test(line))
          .join("\n")
          .trim(),
      );
      return { path: answerOf(site).path, categories: ["broken_sample", "missing_docs"], words: /import/i };
    },
  },
  prompt_signs: {
    promised: false,
    products: ["console", "service"],
    plant(site, nth) {
      const sign = ["$ ", "% ", "$ "][nth % 3]!;
      changeCode(site, "bash", (code) => code.replace(/^/, sign).replace(/\n(?=\w+ show)/, `\n${sign}`));
      const categories: Planted["categories"] = ["broken_sample", "misleading_docs"];
      return { path: answerOf(site).path, categories, words: /prompt|\$ |% /i, line: sign };
    },
  },
  tabs_hidden: {
    promised: false,
    products: ["node", "python", "jvm"],
    except: ["mdx"],
    plant(site) {
      const page = answerOf(site);
      for (const sample of codeOf(page).filter(({ language }) => language === site.product.language))
        page.blocks[page.blocks.indexOf(sample)] = {
          kind: "tabs",
          shown: 0,
          tabs: [
            { name: "Fortran", language: "fortran", code: "program main\n  print *, 'not yet'\nend program" },
            { name: sample.language!, language: sample.language!, code: sample.code },
          ],
        };
      return { path: page.path, categories: ["unreadable_page", "missing_docs"], words: /tab|hidden|script/i };
    },
  },
  image_only: {
    promised: true,
    plant(site) {
      answerOf(site).blocks = [
        text("These are the steps:"),
        ...[1, 2, 3].map((step): Block => ({ kind: "image", source: `/shots/step-${step}.png`, alt: `Step ${step}` })),
      ];
      const words = /image|picture|screenshot|sample|text|section|closest/i;
      return { path: answerOf(site).path, categories: ["unreadable_page", "missing_docs"], words };
    },
  },
  code_screenshot: {
    promised: false,
    plant(site) {
      const page = answerOf(site);
      page.blocks = page.blocks.map((block, at) =>
        block.kind === "code" ? { kind: "image", source: `/shots/${at}.png`, alt: "Screenshot of the editor" } : block,
      );
      return { path: page.path, categories: ["unreadable_page", "missing_docs"], words: /image|screenshot|sample/i };
    },
  },
  deprecated_first: {
    promised: false,
    plant(site) {
      const answer = answerOf(site);
      const path = answer.path.replace("/manual/", "/manual/legacy/");
      const note: Block = {
        kind: "note",
        text: "This page describes version 2, which is deprecated. Don't use it for new work.",
      };
      site.pages.splice(1, 0, { path, title: answer.title, blocks: [note, ...structuredClone(answer.blocks)] });
      const lists = site.pages[0]!.blocks.filter((block) => block.kind === "list");
      lists[1]!.items.unshift(`[${answer.title}](${path})`);
      return { path, categories: ["misleading_docs"], words: /deprecat|old|version 2|legacy/i };
    },
  },
  page_5mb: {
    promised: false,
    plant(site) {
      answerOf(site).blocks.push(text("One more line of the log that nobody reads to the end. ".repeat(90_000)));
      const words = /large|long|size|MB|MiB|heavy|characters/i;
      return { path: answerOf(site).path, categories: ["unreadable_page", "slow", "other"], words };
    },
  },
  contradiction: {
    promised: false,
    plant(site) {
      answerOf(site).blocks.push(text("You may send 20 requests a minute. After that, wait until the minute is over."));
      return {
        path: "",
        categories: ["misleading_docs"],
        words: /contradict|20 requests|300 requests/i,
        line: "20 requests",
      };
    },
  },
  coming_soon: {
    promised: false,
    plant(site, nth) {
      const page = pageAt(site, keys);
      page.blocks = [text(["We're still writing this page.", "Under construction", "To be announced."][nth % 3]!)];
      const words = /stub|short|KEY|empty|construction|still writing|announced|unfinished/i;
      return { path: page.path, categories: ["missing_docs", "unreadable_page", "silent_failure"], words };
    },
  },
  todo_left: {
    promised: false,
    except: ["slate"],
    plant(site, nth) {
      const page = answerOf(site);
      const left = ["FIXME: ask the backend team.", "Lorem ipsum dolor sit amet, consectetur adipiscing elit.", "TBD"];
      const section = sectionOf(site).blocks;
      page.blocks.splice(page.blocks.indexOf(section[1]!), section.length - 1, text(left[nth % 3]!));
      return { path: page.path, categories: ["missing_docs"], words: /./ };
    },
  },
  answer_removed: {
    promised: true,
    plant(site) {
      const page = answerOf(site);
      const section = sectionOf(site).blocks;
      page.blocks.splice(page.blocks.indexOf(section[0]!), section.length);
      return { path: "", categories: ["missing_docs"], words: /no section|not|closest|nothing/i };
    },
  },
};
