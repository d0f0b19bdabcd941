import type { Block, Defect, Planted } from "./site.ts";
import { thirdApiDefects } from "./third-api-defects.ts";
import { code, heading, text } from "./third-pages.ts";
import { allCode, answerPage, changePart, exchange, lineOf, removePage } from "./third-plant.ts";
import { partsOf } from "./third-sites.ts";

/** How samples read one more variable, by kind of product. */
const readers: Record<string, (sample: string, variable: string) => string> = {
  mail: (sample, variable) => sample.replace(/ \\\n {2}-H "Content/, ` \\\n  -H "X-Signing-Key: $${variable}"$&`),
  payments: (sample, variable) =>
    sample.replace(/(process\.env\.\w+)\);/, `$1, { signingKey: process.env.${variable} });`),
  flags: (sample, variable) =>
    sample.replace(/(token=os\.environ\["\w+"\])/, `$1, signing_key=os.getenv("${variable}")`),
  auth: (sample, variable) => sample.replace(" as string }", ` as string, signingKey: process.env["${variable}"] }`),
  maps: (sample, variable) => sample.replace("  center:", `  signingKey: import.meta.env.VITE_${variable},\n  center:`),
  queue: (sample, variable) => sample.replace('")))', `")), client.WithSigner(os.Getenv("${variable}")))`),
  vectors: (sample, variable) =>
    sample.replace(
      "        .user_agent",
      `        .signing_key(std::env::var("${variable}").unwrap())\n        .user_agent`,
    ),
  sms: (sample, variable) => sample.replace(/(getenv\('\w+'\))\)/, `$1)->signedWith($_ENV['${variable}'])`),
  warehouse: (sample, variable) => sample.replace(".build()", `.signingKey(System.getenv("${variable}")).build()`),
  ledger: (sample, variable) =>
    sample.replace("ApiKey = key }", `ApiKey = key, SigningKey = Environment.GetEnvironmentVariable("${variable}") }`),
  hooks: (sample, variable) => sample.replace("\nend\n", `\n  config.signing_key = ENV["${variable}"]\nend\n`),
};
const missingSecret = (products: string[]): Defect => ({
  promised: true,
  products,
  plant(site) {
    const variable = `${site.product.name.toUpperCase()}_SIGNING_KEY`;
    changePart(site, "sample", (sample) => readers[site.product.kind]!(sample, variable));
    return { path: site.answer, categories: ["missing_docs"], words: /SIGNING_KEY/, line: variable };
  },
});

const placeholders: Record<string, string[]> = {
  deploy: ["YOUR-SERVICE-HERE", "my_app_slug_xxxx", "INSERT_SERVICE_ID"],
  shell: ["<message-uid>", "{ACCOUNT_SID}", "[your-mailbox-id]"],
  script: ["YOUR_TEAM_SLUG_HERE", "<<environment>>", "xxxxxxxx-xxxx-xxxx"],
};

/** The package of a product as the package manager of another language would install it. */
const otherEcosystem = (id: string): Record<string, string> => ({
  js: `npm i axios\npip install ${id}-node`,
  python: `pip install httpx\nnpm install ${id}-sdk`,
  rust: `cargo add serde_json tokio\npip install ${id}-db`,
  php: `npm install ${id}`,
  go: `npm install @${id}/client`,
  ruby: `pip install ${id}`,
});

/** Kinds of defects of samples, apart from their syntax. */
const samples: Record<string, Defect> = {
  missing_secret: missingSecret(["payments", "flags", "mail", "auth", "maps"]),
  missing_secret_other: missingSecret(["queue", "vectors", "sms", "warehouse", "ledger", "hooks"]),
  placeholder: {
    promised: true,
    products: ["mail", "deploy", "payments", "flags", "sms"],
    plant(site, nth) {
      const { kind } = site.product;
      const texts = placeholders[kind === "deploy" ? kind : kind === "mail" ? "shell" : "script"]!;
      const placeholder = texts[nth % texts.length]!;
      const id = { mail: "em_7Qd2", deploy: "web-1", payments: "py_40ac", flags: "dark-mode", sms: "tm-6610" }[kind]!;
      changePart(site, "sample", (sample) => sample.replaceAll(id, placeholder));
      return {
        path: site.answer,
        categories: ["missing_docs", "broken_sample", "misleading_docs"],
        words: new RegExp(placeholder.replace(/\W/g, ".")),
        line: placeholder,
      };
    },
  },
  version_mismatch_sdk: {
    promised: true,
    products: ["queue", "maps", "auth"],
    plant(site) {
      const { package: id } = site.product;
      const sample = changePart(site, "sample", (each) =>
        each
          .replace("/client/v4", "/client/v3")
          .replace(`"@${id}/maps"`, `"https://esm.sh/@${id}/maps@3"`)
          .replace(`"@${id}/sdk"`, `"npm:@${id}/sdk@3.11.0"`),
      );
      const line = sample.code.split("\n").find((each) => /v3|maps@3|sdk@3/.test(each));
      const words = /version|v3|@3|major/i;
      return { path: site.answer, categories: ["wrong_contract", "misleading_docs", "missing_docs"], words, line };
    },
  },
  wrong_package: {
    promised: true,
    products: ["payments", "flags", "vectors", "sms", "queue", "hooks"],
    plant(site, nth) {
      const { package: id, language } = site.product;
      const { install } = partsOf(site);
      const misspelled = [`${id.slice(0, 2)}${id[3]}${id[2]}${id.slice(4)}`, `${id}-labs`][nth % 3];
      if (misspelled) for (const sample of allCode(install)) sample.code = sample.code.replaceAll(id, misspelled);
      else {
        const first = install.blocks.findIndex(({ kind }) => kind === "code" || kind === "tabs");
        install.blocks[first] = code("bash", otherEcosystem(id)[language]!);
        install.blocks = install.blocks.filter(({ kind }, at) => at <= first || (kind !== "code" && kind !== "tabs"));
      }
      const words = /install|package|import|module|crate|gem/i;
      return { path: "", categories: ["missing_docs", "misleading_docs", "wrong_contract"], words };
    },
  },
  no_install: {
    promised: true,
    products: ["queue", "hooks", "auth", "sms", "flags", "vectors"],
    plant(site, nth) {
      const { install } = partsOf(site);
      install.blocks = [
        text("Your platform team has prepared everything. Ask them in case something is missing."),
        heading("Get the sources"),
        text(
          [
            "Clone our repository, and build what you need.",
            "We send you an archive on request.",
            "It is in the package index of your language.",
          ][nth % 3]!,
        ),
        text("Builds take about ten minutes on a laptop, and need two gigabytes of memory."),
      ];
      return { path: "", categories: ["missing_docs"], words: /install/i };
    },
  },
  renamed_function: {
    promised: false,
    products: ["payments", "flags", "warehouse"],
    plant(site) {
      const sample = changePart(site, "sample", (each, { task }) =>
        each.replace(new RegExp(`\\.${task.verb}\\(`), `.${task.verb}_v2(`),
      );
      const categories: Planted["categories"] = ["wrong_contract", "misleading_docs", "broken_sample"];
      return { path: site.answer, categories, words: /_v2/, line: lineOf(site, sample), sample: true };
    },
  },
  missing_import: {
    promised: false,
    products: ["auth", "flags", "warehouse"],
    plant(site) {
      const lines = /^(import|from|using|const .*require).*\n/gm;
      changePart(site, "sample", (each) => each.replace(lines, "").trimStart());
      return { path: site.answer, categories: ["broken_sample", "missing_docs"], words: /import/i };
    },
  },
  prompt_signs: {
    promised: true,
    products: ["deploy", "mail"],
    plant(site, nth) {
      const sign = ["$ ", "user@laptop:~$ "][nth % 2]!;
      changePart(site, "sample", (each) =>
        each
          .replace("set -euo pipefail\n\n", "")
          .replace(/^/, sign)
          .replace(/\n(?=until|echo)/g, `\n${sign}`)
          .replace(/\n {2}(?=--|-)/g, "\n>   "),
      );
      const categories: Planted["categories"] = ["broken_sample", "misleading_docs"];
      return { path: site.answer, categories, words: /prompt|\$ |# /i, line: sign };
    },
  },
};

const others: Block[] = [text("The window must be at least 800 pixels wide. Keep it in front while you follow.")];

/** Kinds of defects of what pages say. */
const prose: Record<string, Defect> = {
  image_only: {
    promised: true,
    plant(site, nth) {
      const { section } = partsOf(site);
      const kept = section.filter(
        (block) => block.kind === "heading" && block.level === 2 && section.indexOf(block) === 0,
      );
      const images = [1, 2, 3, 4].map(
        (step): Block => ({
          kind: "image",
          source: `/media/${nth}-${step}.png`,
          alt: ["", `image${step}`, `Screenshot ${step}`][nth % 3]!,
        }),
      );
      exchange(answerPage(site), section, [...kept, ...images]);
      const words = /image|picture|screenshot|sample|text|section|closest/i;
      return { path: site.answer, categories: ["unreadable_page", "missing_docs"], words };
    },
  },
  code_screenshot: {
    promised: true,
    plant(site, nth) {
      const page = answerPage(site);
      page.blocks = page.blocks.map((block, at) =>
        block.kind === "code"
          ? { kind: "image", source: `/media/carbon-${at}.png`, alt: nth % 2 ? "" : "carbon" }
          : block,
      );
      return {
        path: page.path,
        categories: ["unreadable_page", "missing_docs"],
        words: /image|picture|screenshot|sample/i,
      };
    },
  },
  tabs_hidden: {
    promised: true,
    products: ["payments", "flags", "warehouse", "sms"],
    except: ["wordpress", "html4-upper", "no-end-tags"],
    plant(site) {
      const { sample } = partsOf(site);
      const other = { name: "Erlang", language: "erlang", code: "-module(demo).\n-export([run/0]).\n\nrun() -> ok." };
      const shown = { name: site.product.language, language: sample.language!, code: sample.code };
      exchange(answerPage(site), [sample], [{ kind: "tabs", shown: 0, tabs: [other, shown] }]);
      return { path: site.answer, categories: ["unreadable_page", "missing_docs"], words: /tab|hidden|script|panel/i };
    },
  },
  coming_soon: {
    promised: true,
    plant(site, nth) {
      const page = partsOf(site)[nth % 2 ? "install" : "auth"];
      page.blocks = [
        text(
          [
            "Documentation for this part follows shortly.",
            "Work in progress – check back later!",
            "This section is intentionally left blank.",
          ][nth % 3]!,
        ),
      ];
      const words = /stub|short|empty|thin|sentence|progress|follows|blank|unfinished|content|text/i;
      return { path: page.path, categories: ["missing_docs", "unreadable_page", "silent_failure"], words };
    },
  },
  answer_removed: {
    promised: true,
    plant(site) {
      const page = answerPage(site);
      const { section } = partsOf(site);
      if (section[0]!.kind === "heading") exchange(page, section, []);
      else removePage(site, page);
      return { path: "", categories: ["missing_docs"], words: /no section|not|closest|nothing/i };
    },
  },
  deprecated_first: {
    promised: false,
    plant(site, nth) {
      const answer = answerPage(site);
      const path = `/v3${answer.path}`;
      const note: Block = {
        kind: "note",
        text: [
          "You are reading the docs of version 3, which is no longer maintained.",
          "Deprecated since 4.0. Removed in 5.0.",
          "Legacy. Kept for customers with old contracts.",
        ][nth % 3]!,
      };
      site.pages.splice(1, 0, { path, title: answer.title, blocks: [note, ...structuredClone(answer.blocks)] });
      const first = site.pages[0]!.blocks.find((block) => block.kind === "list")!;
      if (first.kind === "list") first.items.unshift(`[${answer.title}](${path})`);
      return { path, categories: ["misleading_docs"], words: /deprecat|old|version 3|legacy|maintained/i };
    },
  },
  contradiction: {
    promised: false,
    plant(site) {
      answerPage(site).blocks.push(text("Calls a second: 15. If you exceed that limit, wait for a moment."));
      return { path: "", categories: ["misleading_docs"], words: /contradict|15|40/i, line: "Calls a second: 15" };
    },
  },
  todo_left: {
    promised: false,
    plant(site, nth) {
      const page = answerPage(site);
      const { section } = partsOf(site);
      const left = [
        "[TODO: screenshots, then ask legal]",
        "xxx Petra writes this after her holidays xxx",
        "Placeholder text. Replace me before launch.",
      ][nth % 3]!;
      const rest = section[0]!.kind === "heading" ? section.slice(1) : section;
      exchange(page, rest, [text(left), ...others]);
      return { path: page.path, categories: ["missing_docs", "misleading_docs"], words: /./ };
    },
  },
  steps_order: {
    promised: false,
    plant(site) {
      const { quickstart } = partsOf(site);
      const steps = quickstart.blocks.find((block) => block.kind === "list")!;
      if (steps.kind === "list")
        steps.items = steps.items
          .map((item) => item.replace(/^\d\. /, ""))
          .reverse()
          .map((item, at) => `${at + 1}. ${item}`);
      return { path: quickstart.path, categories: ["misleading_docs"], words: /order|before|step/i };
    },
  },
  broken_table: {
    promised: false,
    plant(site) {
      const { section } = partsOf(site);
      const table = section.find((block) => block.kind === "table");
      if (table?.kind === "table")
        table.rows = table.rows.map((row, at) => (at === 0 ? [`${row.join(" | ")} |`] : row.slice(1)));
      return {
        path: site.answer,
        categories: ["misleading_docs", "unreadable_page", "other"],
        words: /table|column|cell/i,
      };
    },
  },
};

/** Kinds of defects of what pages say, in forms that the other rounds lack. */
export const thirdContentDefects: Record<string, Defect> = { ...samples, ...prose, ...thirdApiDefects };
