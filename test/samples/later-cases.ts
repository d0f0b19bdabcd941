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
    setup: fence("yaml", "env:\n  HOLLOW_TOKEN: $" + "{{ secrets.HOLLOW_TOKEN }}"),
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
];
