import { breaks, type Case, docs, fence, parses } from "./cases.ts";

const html = (name: string, block: string, finds: string[]): Case => ({
  name,
  pages: {
    "/": `<!doctype html><html><head><title>Create a widget</title></head><body><main><h1>Create a widget</h1><p>This page shows how to create a widget with the client of Hollow.</p>${block}</main></body></html>`,
  },
  finds,
});
const brokenScript = "const widgets = await client.list();\nfor (const each of widgets {\n  console.log(each);\n}";

/** Samples whose language is named in other ways than by a label, and samples without a language. */
export const unlabelledCases: Case[] = [
  html("a bare class of the code", `<pre><code class="makeup js">${brokenScript}</code></pre>`, ["sample-parses"]),
  html(
    "a bare class of the block",
    `<pre class="code ruby tab-yaml">a: b</pre><pre class="highlight json">{"a": 1</pre>`,
    ["sample-parses"],
  ),
  html(
    "a class in a longer one",
    `<div class="mw-highlight mw-highlight-lang-js mw-content-ltr"><pre>${brokenScript}</pre></div>`,
    ["sample-parses"],
  ),
  html(
    "an attribute of a wiki",
    `<pre class="syntaxhighlighter-pre" data-syntaxhighlighter-params="brush: js; gutter: false">${brokenScript}</pre>`,
    ["sample-parses"],
  ),
  html(
    "each line in an element",
    `<pre data-language="toml"><code><div class="line"><div class="code">[widget]</div></div><div class="line"><div class="code">name = "a"</div></div></code></pre>`,
    [],
  ),
  html(
    "lines of Doxygen",
    `<div class="fragment"><div class="line">#include &lt;hollow.h&gt;</div>\n<div class="line"></div>\n<div class="line">int main(void {</div>\n<div class="line">  struct hollow_client *client = hollow_open("x");</div>\n<div class="line">  if (client == NULL) return 1;</div>\n<div class="line"></div>\n<div class="line">  <span class="keyword">return</span> widget_count();</div>\n<div class="line">}</div></div><!-- fragment -->`,
    ["sample-parses"],
  ),
  breaks(
    "C++ with headers",
    "cpp",
    "#include <vector>\n#include <hollow/client.hpp>\n\nint main() {\n  hollow::client api{}};\n  return api.count();\n}",
  ),
  breaks(
    "a misspelled keyword in a head of words",
    "js",
    "export async funktion run(id) {\n  return await client.widgets.get(id);\n}",
  ),
  breaks("JavaScript without a label", "", brokenScript),
  breaks(
    "Python without a label",
    "",
    "from hollow import Client\n\nwith Client() as client:\n    for widget in client.list(limit=5:\n        print(widget.name)",
  ),
  breaks(
    "Go without a label",
    "",
    'package main\n\nimport "hollow.test/go"\n\nfunc main() {\n\tclient, err := hollow.Dial("x")\n\tif err != nil {\n\t\tpanic(err)\n\tdefer client.Close()\n}',
  ),
  breaks(
    "JSON without a label",
    "",
    '{\n  "name": "a",\n  "size": 3\n  "tags": ["x", "y"],\n  "owner": {\n    "id": 7\n  }\n}',
  ),
  breaks("YAML without a label", "", 'widget:\n  name: "a\n  size: 3\n  tags:\n    - x'),
  parses("an object without a label", "", '{\n  "name": "a",\n  "size": 3,\n}'),
  parses("text without a label", "", "Widgets (3 of 9\nDon't (ever) close this\n  for each of them: return the key"),
  parses(
    "headers without a label",
    "",
    'Date: Mon, 01 Jan 2027 10:00: 00\nLink: <https://hollow.test>; rel="next\n\nX: a: b',
  ),
  parses(
    "a diff without a label",
    "",
    "  const a = await list({\n-   limit: 5,\n+   limit: 6\n  });\n- for (const each of a {",
  ),
  docs("a variable that isn't named as a secret", {
    setup: fence("sh", "npm install @hollow/client\nexport HOLLOW_TOKEN=..."),
    guide: fence(
      "js",
      'import { Client } from "@hollow/client";\nconst client = new Client(process.env.HOLLOW_TOKEN);\nclient.seal(process.env["HOLLOW_WEBHOOK_PEPPER"]);',
    ),
    finds: ["prerequisite-explained"],
  }),
  docs("a variable with a default", {
    setup: fence("sh", "npm install @hollow/client\nexport HOLLOW_TOKEN=..."),
    guide: fence(
      "js",
      'import { Client } from "@hollow/client";\nconst client = new Client(process.env.HOLLOW_TOKEN, process.env.HOLLOW_REGION ?? "eu");',
    ),
    finds: [],
  }),
  docs("an older version on the page that answers", {
    setup: fence("", "npm install @hollow/client@^3"),
    guide: `${fence("", "npm install @hollow/client@1")}\n\nThen:\n\n${fence("", 'import { Client } from "@hollow/client";\nexport const client = new Client();')}`,
    finds: ["sdk-version-matches"],
  }),
  docs("words of a placeholder in other paragraphs", {
    setup: "Every project is free.\n\nThe reference is long.",
    guide: fence("sh", "docs widgets create <project-reference> --wait"),
    finds: ["placeholder-explained"],
  }),
];
