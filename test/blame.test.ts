import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import type { TextChange } from "../src/grading/grade.ts";
import { gradeSession } from "../src/grading/score.ts";
import { api, docs, finishes, productSession, reads, runs, sends, uses } from "./fixtures/grading/product.ts";

type Step = (id: string) => AgentEvent[];
type Defect = {
  /** The guide, whose one defect the agent meets. */
  guide: string;
  /** The line to change, and what belongs there. */
  line: string | RegExp;
  expected: RegExp;
  /** What the agent did after it had read the guide, and what it does if the guide is right. */
  steps: Step[];
  right: Step[];
};

const home = reads("/", "# Acme\n\nRead [the guide](/guide).", { provenance: "given" });
const fence = (language: string, ...lines: string[]) => [`\`\`\`${language}`, ...lines, "```"].join("\n");
const page = (...parts: string[]) => ["# Guide", "", "Acme keeps parcels.", "", ...parts].join("\n");

/** A command that fails, as the sandbox reports it. */
const fails =
  (command: string, stderr: string, exitCode = 1): Step =>
  (id) => [
    { type: "tool_call", id, tool: "run_command", input: { command } },
    {
      ...{ type: "tool_result", id, tool: "run_command", ok: false },
      output: { message: `exit code ${exitCode}: ${stderr.split("\n").at(-1)}`, exitCode, stdout: "", stderr },
    },
  ];
const works = (command: string, stdout = "done"): Step => runs(command, stdout);
const writes = (path: string, text: string): Step => uses("write_file", { path, text }, { path, bytes: text.length });
/** A request of the request tool that the product answers. */
const asks = (method: string, path: string, status: number, body: string, input: Record<string, unknown> = {}): Step =>
  sends(method, path.startsWith("http") ? path : api + path, status, body, input);
/** A curl command whose answer the proxy saw. */
const curls = (command: string, status: number, body = "", method = "POST"): Step => {
  const url = /https?:\/\/[^\s'"]+/.exec(command)?.[0] ?? "";
  return runs(command, body, [{ method, url, status, body }], 0);
};
/** Every session reaches the product in the end. */
const reached = asks("POST", "/v1/receipts", 201, "{}");
const json = (value: unknown) => JSON.stringify(value);

const defects: Record<string, Defect> = {
  "a nested field (curl)": {
    guide: page(
      fence(
        "bash",
        `curl ${api}/v2/shipments \\`,
        `  -H 'Content-Type: application/json' \\`,
        `  -d '{"parcel":{"grams":900},"to":"Bern"}'`,
      ),
    ),
    line: `  -d '{"parcel":{"grams":900},"to":"Bern"}'`,
    expected: /weight/,
    steps: [
      curls(
        `curl ${api}/v2/shipments -H 'Content-Type: application/json' -d '{"parcel":{"grams":900},"to":"Bern"}'`,
        422,
        '{"detail":"parcel.weight is missing"}',
      ),
      curls(
        `curl ${api}/v2/shipments -H 'Content-Type: application/json' -d '{"parcel":{"weight":900},"to":"Bern"}'`,
        201,
        '{"id":"s1"}',
      ),
    ],
    right: [
      curls(
        `curl ${api}/v2/shipments -H 'Content-Type: application/json' -d '{"parcel":{"weight":900},"to":"Bern"}'`,
        201,
        '{"id":"s1"}',
      ),
    ],
  },
  "a form field (curl)": {
    guide: page(fence("sh", `curl ${api}/labels -d size=a5 -d colour=red`)),
    line: /colour=red/,
    expected: /color/,
    steps: [
      asks("POST", "/labels", 400, '{"error":"unknown parameter colour"}', { body: "size=a5&colour=red" }),
      asks("POST", "/labels", 201, '{"id":1}', { body: "size=a5&color=red" }),
    ],
    right: [asks("POST", "/labels", 201, '{"id":1}', { body: "size=a5&color=red" })],
  },
  "a missing required field (HTTP)": {
    guide: page(
      fence(
        "http",
        "POST /v1/pickups HTTP/1.1",
        "Host: api.acme.dev",
        "Content-Type: application/json",
        "",
        '{"date":"2026-12-01"}',
      ),
    ),
    line: /POST \/v1\/pickups|"date"/,
    expected: /depot/,
    steps: [
      asks("POST", "/v1/pickups", 422, '{"missing":["depot"]}', {
        headers: { "Content-Type": "application/json" },
        body: json({ date: "2026-12-01" }),
      }),
      asks("POST", "/v1/pickups", 201, '{"id":1}', {
        headers: { "Content-Type": "application/json" },
        body: json({ date: "2026-12-01", depot: "north" }),
      }),
    ],
    right: [
      asks("POST", "/v1/pickups", 201, '{"id":1}', {
        headers: { "Content-Type": "application/json" },
        body: json({ date: "2026-12-01", depot: "north" }),
      }),
    ],
  },
  "a field that the API rejects (JavaScript)": {
    guide: page(
      fence(
        "js",
        `await fetch("${api}/v1/carriers", {`,
        '  method: "POST",',
        '  body: JSON.stringify({ name: "Post", legacy: true }),',
        "});",
      ),
    ),
    line: /legacy/,
    expected: /Remove the field legacy/,
    steps: [
      asks("POST", "/v1/carriers", 400, '{"error":"legacy is not allowed"}', {
        body: json({ name: "Post", legacy: true }),
      }),
      asks("POST", "/v1/carriers", 201, '{"id":1}', { body: json({ name: "Post" }) }),
    ],
    right: [asks("POST", "/v1/carriers", 201, '{"id":1}', { body: json({ name: "Post" }) })],
  },
  "the type of a value (Python)": {
    guide: page(
      fence("python", "import requests", `requests.post("${api}/v1/scales", json={"limit": "20", "unit": "kg"})`),
    ),
    line: /limit/,
    expected: /20/,
    steps: [
      asks("POST", "/v1/scales", 422, '{"error":"limit must be a number"}', { body: '{"limit":"20","unit":"kg"}' }),
      asks("POST", "/v1/scales", 201, '{"id":1}', { body: '{"limit":20,"unit":"kg"}' }),
    ],
    right: [asks("POST", "/v1/scales", 201, '{"id":1}', { body: '{"limit":20,"unit":"kg"}' })],
  },
  "a value that is not accepted (HTTPie)": {
    guide: page(fence("console", `$ http POST ${api}/v1/routes mode=fast to=Bern`)),
    line: /mode=fast/,
    expected: /express/,
    steps: [
      asks("POST", "/v1/routes", 422, '{"error":"mode must be express or standard"}', {
        body: json({ mode: "fast", to: "Bern" }),
      }),
      asks("POST", "/v1/routes", 201, '{"id":1}', { body: json({ mode: "express", to: "Bern" }) }),
    ],
    right: [asks("POST", "/v1/routes", 201, '{"id":1}', { body: json({ mode: "express", to: "Bern" }) })],
  },
  "the name of a header (curl)": {
    guide: page(fence("bash", `curl -X DELETE -H "X-Acme-Key: $ACME_KEY" ${api}/v1/labels/7`)),
    line: /X-Acme-Key/,
    expected: /x-acme-token/i,
    steps: [
      asks("DELETE", "/v1/labels/7", 401, '{"error":"no token"}', { headers: { "X-Acme-Key": "k1" } }),
      asks("DELETE", "/v1/labels/7", 204, "", { headers: { "X-Acme-Token": "k1" } }),
    ],
    right: [asks("DELETE", "/v1/labels/7", 204, "", { headers: { "X-Acme-Token": "k1" } })],
  },
  "a missing version header (Python)": {
    guide: page(fence("py", `r = requests.get("${api}/v1/depots", params={"city": "Bern"})`)),
    line: /requests\.get/,
    expected: /acme-version/i,
    steps: [
      asks("GET", "/v1/depots?city=Bern", 400, '{"error":"Acme-Version header required"}'),
      asks("GET", "/v1/depots?city=Bern", 200, "[]", { headers: { "Acme-Version": "2026-01" } }),
    ],
    right: [asks("GET", "/v1/depots?city=Bern", 200, "[]", { headers: { "Acme-Version": "2026-01" } })],
  },
  "a method in a table": {
    guide: page(
      "| Call | Use |",
      "| --- | --- |",
      "| `POST /v1/parcels/{id}/label` | print the label |",
      "| `GET /v1/parcels` | list |",
    ),
    line: /POST \/v1\/parcels\/\{id\}\/label/,
    expected: /PUT/,
    steps: [asks("POST", "/v1/parcels/91/label", 405, ""), asks("PUT", "/v1/parcels/91/label", 200, "{}")],
    right: [asks("PUT", "/v1/parcels/91/label", 200, "{}")],
  },
  "a path in prose": {
    guide: page("To track a parcel, send `GET /v1/track/{code}`."),
    line: /\/v1\/track\/\{code\}/,
    expected: /\/v1\/tracking\/\{code\}/,
    steps: [asks("GET", "/v1/track/CH9", 404, "no route"), asks("GET", "/v1/tracking/CH9", 200, "{}")],
    right: [asks("GET", "/v1/tracking/CH9", 200, "{}")],
  },
  "a resource with another name (JavaScript)": {
    guide: page(fence("ts", `const res = await axios.post("${api}/v1/invoices", { total: 12 });`)),
    line: /\/v1\/invoices/,
    expected: /\/v1\/bills/,
    steps: [
      asks("POST", "/v1/invoices", 404, "", { body: json({ total: 12 }) }),
      asks("POST", "/v1/bills", 201, "{}", { body: json({ total: 12 }) }),
    ],
    right: [asks("POST", "/v1/bills", 201, "{}", { body: json({ total: 12 }) })],
  },
  "a host": {
    guide: page(fence("bash", "curl -d name=a https://old-api.acme.dev/v1/boxes")),
    line: /old-api\.acme\.dev/,
    expected: /https:\/\/api\.acme\.dev/,
    steps: [
      asks("POST", "https://old-api.acme.dev/v1/boxes", 410, "gone", { body: "name=a" }),
      asks("POST", "/v1/boxes", 201, "{}", { body: "name=a" }),
    ],
    right: [asks("POST", "/v1/boxes", 201, "{}", { body: "name=a" })],
  },
  "a query parameter (fetch)": {
    guide: page(fence("js", `const list = await fetch("${api}/v1/parcels?page_size=5");`)),
    line: /page_size/,
    expected: /limit/,
    steps: [
      asks("GET", "/v1/parcels?page_size=5", 400, '{"error":"unknown parameter page_size"}'),
      asks("GET", "/v1/parcels?limit=5", 200, "[]"),
      asks("POST", "/v1/parcels", 201, "{}", { body: "{}" }),
    ],
    right: [asks("GET", "/v1/parcels?limit=5", 200, "[]"), asks("POST", "/v1/parcels", 201, "{}", { body: "{}" })],
  },
  "a body that is no JSON (curl)": {
    guide: page(fence("bash", `curl ${api}/v1/tags --json '{"name": "red",}'`)),
    line: /"name": "red",/,
    expected: /"name": "red"\}/,
    steps: [
      asks("POST", "/v1/tags", 400, '{"error":"invalid JSON"}', {
        headers: { "content-type": "application/json" },
        body: '{"name": "red",}',
      }),
      asks("POST", "/v1/tags", 201, "{}", { headers: { "content-type": "application/json" }, body: '{"name": "red"}' }),
    ],
    right: [
      asks("POST", "/v1/tags", 201, "{}", { headers: { "content-type": "application/json" }, body: '{"name": "red"}' }),
    ],
  },
  "a short option": {
    guide: page("Pack it:", "", fence("sh", "acme pack -z parcel.json")),
    line: "acme pack -z parcel.json",
    expected: /--compress/,
    steps: [
      fails("acme pack -z parcel.json", "error: unknown option '-z'", 2),
      works("acme pack --compress parcel.json"),
    ],
    right: [works("acme pack --compress parcel.json")],
  },
  "a missing option": {
    guide: page(fence("sh", "acme send parcel.json")),
    line: "acme send parcel.json",
    expected: /--to/,
    steps: [
      fails("acme send parcel.json", "error: required option '--to <city>' not specified"),
      works("acme send parcel.json --to Bern"),
    ],
    right: [works("acme send parcel.json --to Bern")],
  },
  "a subcommand": {
    guide: page(fence("console", "$ acme boxes new --size 3")),
    line: /acme boxes new/,
    expected: /create/,
    steps: [fails("acme boxes new --size 3", "error: unknown command 'new'"), works("acme boxes create --size 3")],
    right: [works("acme boxes create --size 3")],
  },
  "the name of a package": {
    guide: page("Install it with `npm install acme-client`."),
    line: /npm install acme-client/,
    expected: /@acme\/client/,
    steps: [
      fails("npm install acme-client", "npm error 404 'acme-client@*' is not in this registry."),
      works("npm install @acme/client", "added 1 package"),
    ],
    right: [works("npm install @acme/client", "added 1 package")],
  },
  "a missing installation": {
    guide: page(fence("bash", "acme login --token $ACME_TOKEN")),
    line: /acme login/,
    expected: /pip install acme-cli/,
    steps: [
      fails("acme login --token t0", "sh: 1: acme: not found", 127),
      works("pip install acme-cli", "Successfully installed"),
      works("acme login --token t0", "hello"),
    ],
    right: [works("pip install acme-cli", "Successfully installed"), works("acme login --token t0", "hello")],
  },
  "a missing variable": {
    guide: page(fence("bash", "acme deploy")),
    line: "acme deploy",
    expected: /ACME_REGION/,
    steps: [fails("acme deploy", "ACME_REGION is not set"), works("ACME_REGION=eu acme deploy")],
    right: [works("ACME_REGION=eu acme deploy")],
  },
  "a missing request before": {
    guide: page(fence("bash", `curl -X POST ${api}/v1/spaces/main/parcels -d name=a`)),
    line: /spaces\/main\/parcels/,
    expected: /POST \/v1\/spaces/,
    steps: [
      asks("POST", "/v1/spaces/main/parcels", 404, '{"error":"space main does not exist"}', { body: "name=a" }),
      asks("POST", "/v1/spaces", 201, "{}", { body: "id=main" }),
      asks("POST", "/v1/spaces/main/parcels", 201, "{}", { body: "name=a" }),
    ],
    right: [
      asks("POST", "/v1/spaces", 201, "{}", { body: "id=main" }),
      asks("POST", "/v1/spaces/main/parcels", 201, "{}", { body: "name=a" }),
    ],
  },
  "a method of an SDK (JavaScript file)": {
    guide: page(
      fence(
        "js",
        'import { Acme } from "@acme/client";',
        "const acme = new Acme();",
        'await acme.parcels.add({ to: "Bern" });',
      ),
    ),
    line: /acme\.parcels\.add/,
    expected: /acme\.parcels\.create/,
    steps: [
      writes(
        "send.mjs",
        'import { Acme } from "@acme/client";\nconst acme = new Acme();\nawait acme.parcels.add({ to: "Bern" });\n',
      ),
      fails("node send.mjs", "TypeError: acme.parcels.add is not a function"),
      writes(
        "send.mjs",
        'import { Acme } from "@acme/client";\nconst acme = new Acme();\nawait acme.parcels.create({ to: "Bern" });\n',
      ),
      works("node send.mjs", "p1"),
    ],
    right: [
      writes(
        "send.mjs",
        'import { Acme } from "@acme/client";\nconst acme = new Acme();\nawait acme.parcels.create({ to: "Bern" });\n',
      ),
      works("node send.mjs", "p1"),
    ],
  },
  "a missing import (Python here-document)": {
    guide: page(fence("python", 'client = acme.Client("demo")', 'print(client.send("Bern"))')),
    line: /acme\.Client|```python/,
    expected: /import acme/,
    steps: [
      fails(
        `python3 - <<'EOF'\nclient = acme.Client("demo")\nprint(client.send("Bern"))\nEOF`,
        "NameError: name 'acme' is not defined",
      ),
      works(`python3 - <<'EOF'\nimport acme\nclient = acme.Client("demo")\nprint(client.send("Bern"))\nEOF`, "p1"),
    ],
    right: [
      works(`python3 - <<'EOF'\nimport acme\nclient = acme.Client("demo")\nprint(client.send("Bern"))\nEOF`, "p1"),
    ],
  },
  "an argument of an SDK (Ruby file)": {
    guide: page(fence("ruby", 'require "acme"', "client = Acme::Client.new", 'client.ship(destination: "Bern")')),
    line: /destination/,
    expected: /to: "Bern"/,
    steps: [
      writes("ship.rb", 'require "acme"\nclient = Acme::Client.new\nclient.ship(destination: "Bern")\n'),
      fails("ruby ship.rb", "ship.rb:3: unknown keyword: :destination (ArgumentError)"),
      writes("ship.rb", 'require "acme"\nclient = Acme::Client.new\nclient.ship(to: "Bern")\n'),
      works("ruby ship.rb", "p1"),
    ],
    right: [
      writes("ship.rb", 'require "acme"\nclient = Acme::Client.new\nclient.ship(to: "Bern")\n'),
      works("ruby ship.rb", "p1"),
    ],
  },
  "a program that was renamed": {
    guide: page(fence("sh", "acme-compose up -d")),
    line: "acme-compose up -d",
    expected: /acme compose/,
    steps: [fails("acme-compose up -d", "sh: 1: acme-compose: not found", 127), works("acme compose up -d")],
    right: [works("acme compose up -d")],
  },
};

/** Cases of a second round, of other kinds of documents and tools. */
const configured = (key: string) => `service: parcels\n${key}: 3\n`;
const furtherDefects: Record<string, Defect> = {
  "a key of a configuration file (YAML)": {
    guide: page(
      "Save this as `acme.yml`:",
      "",
      fence("yaml", "service: parcels", "replica_count: 3"),
      "",
      fence("sh", "acme apply -f acme.yml"),
    ),
    line: "replica_count: 3",
    expected: /replicas: 3/,
    steps: [
      writes("acme.yml", configured("replica_count")),
      fails("acme apply -f acme.yml", "acme.yml: unknown key replica_count"),
      writes("acme.yml", configured("replicas")),
      works("acme apply -f acme.yml"),
    ],
    right: [writes("acme.yml", configured("replicas")), works("acme apply -f acme.yml")],
  },
  "a function of a library (Go)": {
    guide: page(
      fence("go", "package main", "", 'import "acme.dev/go"', "", "func main() {", '\tacme.SendParcel("Bern")', "}"),
    ),
    line: /acme\.SendParcel/,
    expected: /acme\.Send\("Bern"\)/,
    steps: [
      works(
        `cat > main.go <<'EOF'\npackage main\n\nimport "acme.dev/go"\n\nfunc main() {\n\tacme.SendParcel("Bern")\n}\nEOF`,
      ),
      fails("go run main.go", "./main.go:6:7: undefined: acme.SendParcel"),
      works(
        `cat > main.go <<'EOF'\npackage main\n\nimport "acme.dev/go"\n\nfunc main() {\n\tacme.Send("Bern")\n}\nEOF`,
      ),
      works("go run main.go", "p1"),
    ],
    right: [
      works(
        `cat > main.go <<'EOF'\npackage main\n\nimport "acme.dev/go"\n\nfunc main() {\n\tacme.Send("Bern")\n}\nEOF`,
      ),
      works("go run main.go", "p1"),
    ],
  },
  "an option of a container": {
    guide: page(fence("bash", "docker run --port 80:80 acme/server")),
    line: /--port/,
    expected: /--publish/,
    steps: [
      fails("docker run --port 80:80 acme/server", "unknown flag: --port", 125),
      works("docker run --publish 80:80 acme/server"),
    ],
    right: [works("docker run --publish 80:80 acme/server")],
  },
  "an image that was renamed": {
    guide: page(fence("console", "$ docker pull acme/server-old:3")),
    line: /acme\/server-old/,
    expected: /acme\/server:3/,
    steps: [
      fails("docker pull acme/server-old:3", "manifest for acme/server-old:3 not found"),
      works("docker pull acme/server:3"),
    ],
    right: [works("docker pull acme/server:3")],
  },
  "a scheme of authorization": {
    guide: page(fence("bash", `curl -H "Authorization: Token $KEY" -d name=a ${api}/v1/boxes`)),
    line: /Authorization/,
    expected: /Bearer/,
    steps: [
      asks("POST", "/v1/boxes", 401, "use a Bearer token", { body: "name=a", headers: { Authorization: "Token k1" } }),
      asks("POST", "/v1/boxes", 201, "{}", { body: "name=a", headers: { Authorization: "Bearer k1" } }),
    ],
    right: [asks("POST", "/v1/boxes", 201, "{}", { body: "name=a", headers: { Authorization: "Bearer k1" } })],
  },
  "a missing folder before": {
    guide: page(fence("sh", "acme export --out exports/all.csv")),
    line: /acme export/,
    expected: /mkdir exports/,
    steps: [
      fails("acme export --out exports/all.csv", "exports: no such directory"),
      works("mkdir exports && acme export --out exports/all.csv"),
    ],
    right: [works("mkdir exports && acme export --out exports/all.csv")],
  },
  "a page of plain text": {
    guide: "Guide\n\nTo make a box, run\n\n    curl -X PATCH https://api.acme.dev/v1/crates\n\nand wait.",
    line: /PATCH/,
    expected: /POST/,
    steps: [asks("PATCH", "/v1/crates", 405, ""), asks("POST", "/v1/crates", 201, "{}")],
    right: [asks("POST", "/v1/crates", 201, "{}")],
  },
  "a field in a list (PHP)": {
    guide: page(
      fence(
        "php",
        "<?php",
        `$client->post("${api}/v1/orders", ["json" => ["items" => [["sku" => "a", "qty" => 2]]]]);`,
      ),
    ),
    line: /qty/,
    expected: /quantity/,
    steps: [
      asks("POST", "/v1/orders", 422, "items.0.quantity is required", {
        body: json({ items: [{ sku: "a", qty: 2 }] }),
      }),
      asks("POST", "/v1/orders", 201, "{}", { body: json({ items: [{ sku: "a", quantity: 2 }] }) }),
    ],
    right: [asks("POST", "/v1/orders", 201, "{}", { body: json({ items: [{ sku: "a", quantity: 2 }] }) })],
  },
};

const graded = (guide: string, steps: Step[]) =>
  gradeSession(productSession([home, reads("/guide", guide), ...steps, reached, finishes("succeeded")]));

/** The guide with the change that a fix proposes. */
function corrected(guide: string, evidence: TextChange | null | undefined): string {
  const lines = guide.split("\n");
  const at = (evidence?.line ?? 1) - 1;
  const { found, expected } = evidence ?? {};
  lines[at] = found ? (lines[at] ?? "").replace(found, () => expected ?? "") : `${lines[at]}\n${expected}`;
  return lines.join("\n");
}

describe("a defect of the docs that an agent worked around is the first fix:", () => {
  test.each(Object.entries({ ...defects, ...furtherDefects }))("%s", (_, { guide, line, expected, steps, right }) => {
    const { recommendations, lost, score } = graded(guide, steps);
    const [first] = recommendations;
    const evidence = first?.evidence;
    expect(evidence?.url).toBe(`${docs}/guide`);
    const there = guide.split("\n")[(evidence?.line ?? 0) - 1] ?? "";
    if (typeof line === "string") expect(there).toBe(line);
    else expect(there).toMatch(line);
    expect(`${evidence?.expected ?? ""} ${first?.action}`).toMatch(expected);
    expect(lost?.agent).toBe(0);
    const gained = (graded(corrected(guide, evidence), right).score ?? 0) - (score ?? 0);
    expect(gained).toBeGreaterThanOrEqual((first?.gain?.low ?? 0) - 0.1);
    expect(gained).toBeLessThanOrEqual((first?.gain?.high ?? 0) + 0.1);
  });
});

/** Errors that the docs did not cause. */
const ownErrors: Record<string, [guide: string, ...steps: Step[]]> = {
  "a typo in the path": [
    page(fence("sh", `curl -d name=a ${api}/v1/parcels`)),
    asks("POST", "/v1/parcel", 404, "", { body: "name=a" }),
    asks("POST", "/v1/parcels", 201, "{}", { body: "name=a" }),
  ],
  "a field of the sample left out": [
    page(fence("sh", `curl ${api}/v1/parcels --json '{"name":"a","to":"Bern"}'`)),
    asks("POST", "/v1/parcels", 422, "to is required", {
      headers: { "content-type": "application/json" },
      body: json({ name: "a" }),
    }),
    asks("POST", "/v1/parcels", 201, "{}", {
      headers: { "content-type": "application/json" },
      body: json({ name: "a", to: "Bern" }),
    }),
  ],
  "a header that the page demands left out": [
    page("Every request needs the header `X-Depot`.", "", fence("sh", `curl -d name=a ${api}/v1/parcels`)),
    asks("POST", "/v1/parcels", 400, "X-Depot is missing", { body: "name=a" }),
    asks("POST", "/v1/parcels", 201, "{}", { body: "name=a", headers: { "X-Depot": "north" } }),
  ],
  "a header that programs add on their own": [
    page(fence("sh", `curl -d name=a ${api}/v1/parcels`)),
    asks("POST", "/v1/parcels", 400, "try again", { body: "name=a" }),
    asks("POST", "/v1/parcels", 201, "{}", { body: "name=a", headers: { "User-Agent": "parcels/1.0" } }),
  ],
  "a documented step skipped": [
    page(fence("sh", "acme init", "acme deploy")),
    fails("acme deploy", "acme is not initialised, run acme init"),
    works("acme init"),
    works("acme deploy"),
  ],
  "an ID of the sample used as if it existed": [
    page(fence("sh", `curl ${api}/v1/parcels/123/label`)),
    asks("GET", "/v1/parcels/123/label", 404, "no parcel 123"),
    asks("POST", "/v1/parcels", 201, '{"id":77}', { body: "{}" }),
    asks("GET", "/v1/parcels/77/label", 200, "{}"),
  ],
  "the request of another purpose": [
    page("Replace a parcel with `PUT /v1/parcels/{id}`. Create one with `POST /v1/parcels`."),
    asks("PUT", "/v1/parcels/5", 404, "", { body: json({ name: "a" }) }),
    asks("POST", "/v1/parcels", 201, "{}", { body: json({ name: "a" }) }),
  ],
  "an invented option": [
    page(fence("sh", "acme send parcel.json")),
    fails("acme send parcel.json --fast", "error: unknown option '--fast'", 2),
    works("acme send parcel.json"),
  ],
  "a conflict with what the agent did before": [
    page(fence("sh", `curl -d name=demo ${api}/v1/spaces`)),
    asks("POST", "/v1/spaces", 201, "{}", { body: "name=demo" }),
    asks("POST", "/v1/spaces", 409, "demo exists", { body: "name=demo" }),
    asks("POST", "/v1/spaces", 201, "{}", { body: "name=demo2" }),
  ],
  "a failure of the service that passed": [
    page(fence("sh", `curl -d name=a ${api}/v1/parcels`)),
    asks("POST", "/v1/parcels", 503, "try again", { body: "name=a" }),
    asks("POST", "/v1/parcels", 201, "{}", { body: "name=a" }),
  ],
  "a mistake in the agent's own code": [
    page(
      fence(
        "js",
        'import { Acme } from "@acme/client";',
        "const acme = new Acme();",
        'await acme.parcels.create({ to: "Bern" });',
      ),
    ),
    writes(
      "a.mjs",
      'import { Acme } from "@acme/client";\nconst acme = new Acme();\nconst p = await acme.parcels.create({ to: "Bern" });\nconsole.log(p.ident.toUpperCase());\n',
    ),
    fails("node a.mjs", "TypeError: Cannot read properties of undefined (reading 'toUpperCase')"),
    writes(
      "a.mjs",
      'import { Acme } from "@acme/client";\nconst acme = new Acme();\nconst p = await acme.parcels.create({ to: "Bern" });\nconsole.log(p.id);\n',
    ),
    works("node a.mjs", "p1"),
  ],
};

const furtherOwnErrors: typeof ownErrors = {
  "an app of the sample in place of the agent's own": [
    page(fence("sh", "acme create demo-app", "acme deploy demo-app")),
    works("acme create notes"),
    fails("acme deploy demo-app", "app demo-app does not exist"),
    works("acme deploy notes"),
  ],
  "a placeholder sent as it is": [
    page(fence("sh", `curl -H "Authorization: Bearer YOUR_KEY" -d name=a ${api}/v1/boxes`)),
    asks("POST", "/v1/boxes", 401, "", { body: "name=a", headers: { Authorization: "Bearer YOUR_KEY" } }),
    asks("POST", "/v1/boxes", 201, "{}", { body: "name=a", headers: { Authorization: "Bearer k1" } }),
  ],
  "a program of its own that is not installed": [
    page(fence("sh", `curl -d name=a ${api}/v1/boxes`)),
    fails(`curl -d name=a ${api}/v1/boxes | jq .id`, "sh: 1: jq: not found", 127),
    works(`curl -d name=a ${api}/v1/boxes`, "{}"),
  ],
  "tests that fail because of its own code": [
    page(fence("sh", "npm test")),
    fails("npm test", "expected 1 to be 2"),
    writes("sum.js", "export const sum = (a, b) => a + b;"),
    works("npm test"),
  ],
  "a command in the wrong folder": [
    page(fence("sh", "acme new shop", "cd shop", "npm start")),
    works("acme new shop"),
    fails("npm start", "no package.json"),
    works("cd shop && npm start"),
  ],
};

describe("an error that the docs did not cause stays the agent's:", () => {
  test.each(Object.entries({ ...ownErrors, ...furtherOwnErrors }))("%s", (_, [guide, ...steps]) => {
    const { frictions, recommendations } = graded(guide, steps);
    expect(frictions.filter(({ category }) => category === "misleading_docs")).toEqual([]);
    expect(recommendations.filter(({ evidence }) => evidence !== null)).toEqual([]);
  });
});
