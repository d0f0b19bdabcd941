import { toMarkdown } from "./render.ts";
import type { Defect } from "./site.ts";
import { heading, text } from "./third-pages.ts";
import { answerPage, withApi } from "./third-plant.ts";
import { partsOf } from "./third-sites.ts";

/** Kinds of defects of links and of files for machines. */
export const thirdLinkDefects: Record<string, Defect> = {
  dead_link: {
    promised: true,
    plant(site, nth) {
      const page = answerPage(site);
      const [section] = partsOf(site).section;
      const at = page.blocks.indexOf(section!) + 1;
      const menu = site.pages[4]!.path;
      switch (nth % 4) {
        case 0:
          page.blocks.push(
            text(
              "People who like videos may prefer [the recorded workshop](../workshops/spring-2025), which is an hour long.",
            ),
          );
          return {
            path: "workshops/spring-2025",
            categories: ["dead_link"],
            words: /dead|404|not found|missing/i,
            line: "workshops/spring-2025",
          };
        case 1:
          site.replacements.set(menu, { status: 404, body: "<h1>Nothing here</h1>" });
          return { path: menu, categories: ["dead_link"], words: /dead|404|not found|missing/i };
        case 2:
          page.blocks.splice(at, 0, {
            kind: "table",
            head: ["Plan", "Available"],
            rows: [
              ["Team", "yes"],
              ["Free", "[on request](/legal/requests.php?topic=free)"],
            ],
          });
          return {
            path: "/legal/requests.php",
            categories: ["dead_link"],
            words: /dead|404|not found|missing/i,
            line: "/legal/requests.php",
          };
        default:
          page.blocks.splice(at, 0, {
            kind: "note",
            text: "Our [glossary of terms](/glossary-a-z#p) explains every word.",
          });
          site.replacements.set("/glossary-a-z", { status: 410, body: "Gone", type: "text/plain" });
          return {
            path: "/glossary-a-z",
            categories: ["dead_link"],
            words: /dead|410|gone|not found|missing/i,
            line: "/glossary-a-z",
          };
      }
    },
  },
  wrong_anchor: {
    promised: true,
    except: ["zendesk"],
    plant(site, nth) {
      const { auth, errors } = partsOf(site);
      const page = nth % 3 === 0 ? auth : errors;
      const renamed = page.blocks.find((block) => block.kind === "heading")!;
      const anchor = ["create-a-secret", "Ask-for-help", "error-codes"][nth % 3]!;
      if (nth % 3 === 0 && renamed.kind === "heading") renamed.text = "Issue one in the console";
      const target = `${page.path}#${anchor}`;
      answerPage(site).blocks.push(text(`In case of doubt, see [what we wrote about it](${target}).`));
      return { path: target, categories: ["dead_link"], words: /section|anchor|fragment|heading|#/i, line: target };
    },
  },
  redirect_loop: {
    promised: true,
    plant(site, nth) {
      const page = partsOf(site)[nth % 2 ? "auth" : "install"];
      const to = (location: string, status: number) => ({ status, headers: { location } });
      if (nth % 3 === 0) site.replacements.set(page.path, to(`${page.path}?v=4`, 301));
      else {
        site.replacements.set(page.path, to(`/set-language?to=en&back=${page.path}`, nth % 3 === 1 ? 302 : 308));
        site.replacements.set("/set-language", to(page.path, 303));
      }
      return { path: page.path, categories: ["dead_link"], words: /redirect|loop/i };
    },
  },
  llms_stale: {
    promised: true,
    plant(site, nth) {
      const old = ["/v3/llms-full.txt", "/cookbook/index", "/docs/beta/agents"][nth % 3]!;
      const paths = site.pages.map(({ path }) => path);
      site.llmsTxt = nth % 2 ? [...paths, old] : [paths[0]!, old, ...paths.slice(1)];
      return { path: old, categories: ["dead_link"], words: /llms/i };
    },
  },
  llms_lacks_answer: {
    promised: false,
    plant(site) {
      site.llmsTxt = site.pages.map(({ path }) => path).filter((path) => path !== site.answer);
      return { path: "", categories: ["missing_docs", "other"], words: /llms/i };
    },
  },
  sitemap_stale: {
    promised: true,
    plant(site, nth) {
      const old = ["/2021/11/we-moved", "/docs/v3/intro", "/tag/news"][nth % 3]!;
      site.sitemap = [old, `${old}-2`, ...site.pages.map(({ path }) => path)];
      return { path: old, categories: ["dead_link"], words: /sitemap/i };
    },
  },
  robots_block: {
    promised: true,
    plant(site, nth) {
      const { install, auth } = partsOf(site);
      site.robotsTxt = [
        `User-agent: *\nDisallow: /*${install.path.slice(-9)}$\n`,
        `# Please be nice\nUser-agent: evald\nUser-agent: otherbot\nDisallow: ${auth.path}\n`,
        `User-agent: *\nAllow: /\nDisallow: ${site.answer}\n`,
      ][nth % 3]!;
      return { path: "", categories: ["auth"], words: /robots/i };
    },
  },
  openapi_ref: {
    promised: true,
    products: withApi,
    plant(site, nth) {
      const api = site.api!;
      const [path, operations] = Object.entries(api.paths)[1 + (nth % 3)]!;
      const operation = Object.values(operations)[0]!;
      const changes = [
        () => {
          const [name] = Object.keys(api.components.schemas);
          delete api.components.schemas[name!];
        },
        () => {
          operation.parameters[0]!.schema.type = "uuid";
        },
        () => {
          delete api.paths[path];
          api.paths[path.slice(1)] = operations;
        },
        () => {
          operation.parameters[0]!.in = "url";
        },
      ];
      changes[nth % changes.length]!();
      return { path: "/openapi.json", categories: ["wrong_contract"], words: /description|ref|valid|openapi|schema/i };
    },
  },
  md_differs: {
    promised: false,
    plant(site, nth) {
      const page = answerPage(site);
      const old = [
        { ...page, blocks: page.blocks.filter(({ kind }) => kind === "text") },
        { ...page, blocks: [text("See the website for this page.")] },
        { ...page, title: "Version 3", blocks: [heading("Removed"), text("Version 3 had no such thing.")] },
      ][nth % 3]!;
      site.markdown = new Map(site.pages.map((each) => [each.path, toMarkdown(each === page ? old : each)]));
      return {
        path: "",
        categories: ["misleading_docs", "other", "missing_docs", "unreadable_page"],
        words: /differ|markdown/i,
      };
    },
  },
};
