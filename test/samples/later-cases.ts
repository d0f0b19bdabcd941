import { breaks, type Case, contract, contradicts, docs, fence, matches, parses } from "./cases.ts";

const setUp = (command: string) => fence("sh", command);
const badge = { name: { type: "string" }, motto: { type: "string", maxLength: 40 } };
const badges = {
  ...contract,
  paths: {
    "/badges": {
      post: {
        requestBody: { content: { "application/json": { schema: { type: "object", properties: badge } } } },
        responses: { 201: { description: "ok" } },
      },
    },
  },
};
const withMotto = (name: string, motto: string, finds: string[]): Case => ({
  ...matches(
    name,
    "sh",
    `curl -H "Authorization: Bearer $HOLLOW_KEY" --json '{ "motto": "${motto}" }' https://api.hollow.test/v1/badges`,
  ),
  finds,
  contract: badges,
});

/** Cases that came later. */
export const laterCases: Case[] = [
  // Packages and secrets.
  docs("two letters of a package in the wrong order, in one of several samples", {
    setup: setUp("npm install @hollow/widgets"),
    guide: fence("js", 'import { create } from "@hollow/wigdets";\ncreate();'),
    other: fence("js", 'import { list } from "@hollow/widgets";\nlist();'),
    finds: ["prerequisite-explained"],
  }),
  docs("a package of one sample whose name differs by a letter, beside one that others import", {
    setup: setUp("npm install @hollow/react-widgets"),
    guide: fence("js", 'import { create } from "@hollow/preact-widgets";\ncreate();'),
    other: fence("js", 'import { list } from "@hollow/react-widgets";\nlist();'),
    finds: [],
  }),
  docs("a package that the page about installation only imports, and a service of its name", {
    setup: `## Install the server\n\n${setUp("sudo apt-get install hollow-server\nsudo systemctl enable --now hollow")}\n\n${fence("python", "import hollow\nhollow.ping()")}`,
    guide: fence("python", "import hollow\nhollow.create()"),
    other: fence("python", "import hollow\nhollow.list()"),
    finds: ["prerequisite-explained"],
  }),
  docs("a package that an installer of its own gets", {
    setup: `## Install the client\n\n${setUp("./vendor.sh get hollow")}`,
    guide: fence("python", "import hollow\nhollow.create()"),
    other: fence("python", "import hollow\nhollow.list()"),
    finds: [],
  }),
  docs("a secret that samples only pass on", {
    setup: fence("yaml", `env:\n  HOLLOW_TOKEN: \${{ secrets.HOLLOW_TOKEN }}`),
    guide: fence("sh", 'HOLLOW_TOKEN="$HOLLOW_TOKEN" hollow create'),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret that a sample sets, and passes on in the same line", {
    setup: fence("sh", 'HOLLOW_TOKEN=$(hollow login); hollow ping --token "$HOLLOW_TOKEN"'),
    guide: fence("sh", 'HOLLOW_TOKEN="$HOLLOW_TOKEN" hollow create'),
    finds: [],
  }),
  // Calls of an API.
  withMotto("a text that is too long", "Small, round, and made of wood from the hills behind the town", [
    "sample-matches-api",
  ]),
  withMotto("a text that just fits", "Small, round, and made of wood", []),
  withMotto("a placeholder that is longer than its value", "REPLACE_WITH_THE_MOTTO_THAT_IS_ON_YOUR_BADGE", []),
  contradicts(
    "a URL in a variable",
    "ruby",
    'uri = URI("https://api.hollow.test/v1/widgets/7/history")\nrequest = Net::HTTP::Get.new(uri)\nrequest["Authorization"] = "Bearer #{ENV.fetch("HOLLOW_KEY")}"',
  ),
  contradicts(
    "a URL in a variable of a sample without a label",
    "",
    'uri = URI("https://api.hollow.test/v1/widgets/7/history")\nrequest = Net::HTTP::Get.new(uri)\nrequest["Authorization"] = "Bearer #{ENV.fetch("HOLLOW_KEY")}"',
  ),
  contradicts(
    "a URL in a variable of Go",
    "go",
    'url := "https://api.hollow.test/v1/gadgets"\nreq, err := http.NewRequest("POST", url, body)',
  ),
  matches(
    "a variable with one of two URLs",
    "php",
    '$url = "https://api.hollow.test/v1/widgets";\nif ($old) {\n    $url = "https://api.hollow.test/v1/status";\n}\n$client->delete($url);',
  ),
  // Brackets, quotes and blocks.
  breaks(
    "a brace that is missing in GraphQL",
    "graphql",
    'query Widgets {\n  widgets(first: 5, name: "a }") {\n    id\n}',
  ),
  breaks("a parenthesis that is missing in GraphQL", "gql", "mutation {\n  addWidget(name: $name {\n    id\n  }\n}"),
  parses(
    "a schema of GraphQL with texts of several lines, and a fragment of one type",
    "graphql",
    '"""\nA widget (or "thing" {)\n"""\ntype Widget {\n  id: ID! # not (\n  name(locale: String = "de"): String\n}\n\nquery {\n  node { ... on Widget { id } }\n}',
  ),
  breaks("a brace that is missing in HCL", "hcl", 'backend "hollow" {\n  retry {\n    wait = "2m"\n  }\n  lock = true'),
  breaks(
    "a quote that is missing in HCL",
    "terraform",
    'resource "hollow_widget" "a" {\n  name = "north\n  size = 2\n}',
  ),
  parses(
    "HCL with expressions in texts, and texts of several lines",
    "hcl",
    `locals {\n  a = "\${join(",", [for s in var.x : "\${s}-$\${b"])}"\n  b = jsonencode({ a = { b = "\${c}" } }) // (\n  /* { */\n  c = <<-EOT\n    don't {\n    "\n  EOT\n}`,
  ),
  breaks(
    "a block of Ruby without an end",
    "ruby",
    'Hollow.open do |hollow|\n  hollow.each do |widget|\n    puts "end" if widget.name\n  end\n',
  ),
  breaks(
    "a function of Lua without an end",
    "lua",
    "local function add(a, b)\n  if a then\n    return a + b\n  elseif b then\n    return b\n  end\n\nprint(add(1, 2))",
  ),
  parses(
    "Ruby with modifiers, values of conditions, loops and short methods",
    "ruby",
    'class Widget < Base\n  attr_reader :end, class: "a"\n  def area = width * height\n  def name=(value)\n    @name = if value then value else "none" end\n    return unless value\n    "#{value}" if value\n  end\n  while open? do\n    close\n  end\n  self.class.begin\nend',
  ),
  parses(
    "Ruby with modifiers after texts",
    "ruby",
    'class Widget < Base\n  def label\n    return "a" if wide?\n    "b" unless open?\n  end\n  x = case size\n      when 1 then "a"\n      end\n  begin\n    open\n  end while closed?\nend',
  ),
  docs("the start of a longer program in Ruby", {
    guide: fence("ruby", "module Hollow\n  class Widget\n    def open\n      super"),
    finds: [],
  }),
  docs("the first line of a block in Ruby", { guide: fence("ruby", "Hollow.configure do |config|"), finds: [] }),
  ...["json", "python", "sh"].map((language) =>
    breaks(
      `a merge conflict in ${language}`,
      language,
      'run("a")\n<<<<<<< HEAD\nrun("b")\n=======\nrun("c")\n>>>>>>> theirs\nrun("d")',
    ),
  ),
  docs("a merge conflict that the page explains", {
    guide: `Git marks a conflict in the file:\n\n${fence("json", '{\n<<<<<<< HEAD\n  "a": 1\n=======\n  "a": 2\n>>>>>>> theirs\n}')}`,
    finds: [],
  }),
  parses("a part of a merge conflict, and a line of equal signs", "python", 'print("a")\n=======\nprint("b")'),
  breaks(
    "a name in YAML that starts with an at sign, beside a template in quotes",
    "yaml",
    'widget:\n  key: "{{ .Env.HOLLOW_KEY }}"\n  team: @hollow',
  ),
  breaks(
    "a key of YAML in a column of its own, beside templates in quotes",
    "yaml",
    "widget:\n    - key: '{{ key }}'\n      size: 2\n     team: hollow",
  ),
  parses(
    "YAML with a template as a value, in quotes and without",
    "yaml",
    'widget:\n  key: "{{ key }}"\n  {{ if team }}\n  team: {{ team }}\n  {{ end }}',
  ),
  {
    name: "a language beside the class of a figure",
    pages: {
      "/": '<title>Hollow</title><h1>Create a widget</h1><p>This page shows how to create a widget with the client of Hollow.</p><figure class="highlight json"><table><tr><td class="code"><pre>{<br>  "file": "C:\\work",<br>  "size": 2<br>}</pre></td></tr></table></figure>',
    },
    finds: ["sample-parses"],
  },
  {
    name: "classes of a figure that are no language",
    pages: {
      "/": '<title>Hollow</title><h1>Create a widget</h1><p>This page shows how to create a widget with the client of Hollow.</p><figure class="highlight wide plaintext"><pre>{ file: "C:\\work" size</pre></figure>',
    },
    finds: [],
  },
  contradicts(
    "a value of a query that curl takes as data",
    "sh",
    'curl -G https://api.hollow.test/v1/widgets -H "Authorization: Bearer $HOLLOW_KEY" -d limit=all',
  ),
  matches(
    "values of a query that curl takes as data, one of them in a variable",
    "sh",
    'curl -G https://api.hollow.test/v1/widgets -H "Authorization: Bearer $HOLLOW_KEY" -d limit=20 --data-urlencode cursor="$NEXT"',
  ),
  ...["hollow build &amp;&amp; hollow push", "hollow list\nhollow list &gt; widgets.txt"].map((command) =>
    breaks(`an operator of the shell that was escaped twice: ${command}`, "sh", command),
  ),
  parses(
    "escapes of HTML in texts, URLs and comments of shell commands",
    "sh",
    "hollow name 'a &amp; b' \"c &lt; d\" # &amp;&amp; more\nopen https://hollow.test/?a=1&amp;b=2\ncat > a.xml <<END\n<p>a &amp; b</p>\nEND",
  ),
  contradicts(
    "curl with a form for a path that takes JSON",
    "sh",
    'curl https://api.hollow.test/v1/labels -H "Authorization: Bearer $HOLLOW_KEY" -d name=north -d size=2',
  ),
  matches(
    "curl with a file for a path that takes JSON",
    "sh",
    'curl https://api.hollow.test/v1/labels -H "Authorization: Bearer $HOLLOW_KEY" -d @label.json',
  ),
];
