import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { gradeSession } from "../src/grading/score.ts";
import { api, docs, finishes, productSession, reads, runs, sends, uses } from "./fixtures/grading/product.ts";

type Steps = ((id: string) => AgentEvent[])[];

const id = "job_91f3";
const answer = `{"id":"${id}","state":"queued"}`;
const home = reads("/", "Create a job: POST /v1/jobs. It answers with its id and state.", { provenance: "given" });
const sample = reads("/sample", `The answer: ${answer}`);
const isUp = { url: `${api}/health`, status: 200, body: '{"up":true}' };
const created = { method: "POST", url: `${api}/v1/jobs`, status: 201, body: answer };
const write = (path: string, text: string) => uses("write_file", { path, text }, { path, bytes: text.length });
const page = (url: string, text: string) => uses("browse", { action: "open", url }, { status: 200, url, text });

const graded = (steps: Steps, claim: string = id, product: string | null = api) =>
  gradeSession(productSession([home, ...steps, finishes("succeeded")], { met: "yes", claim, product }));

/** Each ends with the event that a judge cites. `claim` is the judge's quote, by default the ID. */
const forgeries: [string, Steps, claim?: string][] = [
  ["a file that the agent wrote, read with cat", [write("out.json", answer), runs("cat out.json", answer)]],
  ["printf of the whole answer", [runs(`printf '${answer}'`, answer)]],
  ["printf that puts the answer together", [runs(`printf '{"id":"job_%s"}' 91f3`, `{"id":"${id}"}`)]],
  ["a script that prints a made-up answer", [write("a.py", `print('${answer}')`), runs("python3 a.py", answer)]],
  ["a script that computes the id", [write("a.py", "print(hex(37363))"), runs("python3 a.py", answer)]],
  [
    "curl of the docs' own sample",
    [runs(`curl ${docs}/job.json`, answer, [{ url: `${docs}/job.json`, status: 200, body: answer }])],
  ],
  ["http_request of the docs' own sample", [sends("GET", `${docs}/job.json`, 200, answer)]],
  ["the result of write_file", [write(`${id}.json`, "{}")]],
  [
    "the result of list_files",
    [write(`${id}.json`, "{}"), uses("list_files", { path: "." }, { files: [`${id}.json 2 f`] })],
  ],
  ["a mock server of the agent", [runs("node mock.js & curl localhost:8080/v1/jobs", answer)]],
  ["the address that the agent asked for", [sends("GET", `${api}/v1/jobs/${id}`, 200, "{}")]],
  ["the name of our own field", [runs("true", "ok")], "exitCode"],
  ["our own field with its value", [runs("true", "")], '"exitCode":0'],
  [
    "a real request beside a made-up answer",
    [runs(`curl -s ${api}/health >/dev/null; printf '${answer}'`, answer, [isUp])],
  ],
  [
    "a real request beside an id from $RANDOM",
    [runs(`curl -s ${api}/health; echo job_$HEX`, `{"up":true}\n${id}`, [isUp])],
  ],
  ["an answer that is an error", [sends("POST", `${api}/v1/jobs`, 422, `{"error":"${id}"}`)]],
  [
    "a command that the product refused, and that printed",
    [runs(`curl ${api}/v1/jobs; echo job_$X`, id, [{ ...created, status: 401, body: "{}" }])],
  ],
  [
    "a request that got no answer",
    [runs("curl --retry 1 x; ./made", id, [{ ...created, status: null, body: undefined as never }])],
  ],
  [
    "a tunnel of which nothing was seen",
    [runs("./client", answer, [{ method: "CONNECT", url: `${api}/`, status: 200 }])],
  ],
  ["an answer of another call", [runs("./warm-up", "", [isUp]), runs("./made-up", answer)]],
  ["a request of no call", [runs("./made-up", answer, [{ ...created, id: null }])]],
  [
    "another host",
    [runs("curl https://echo.example.com", answer, [{ url: "https://echo.example.com/", status: 200, body: answer }])],
  ],
  [
    "a registry of packages",
    [runs("npm view job", answer, [{ url: "https://registry.npmjs.org/job", status: 200, body: answer }])],
  ],
  ["what the docs showed before", [sample, sends("POST", `${api}/v1/jobs`, 201, answer)]],
  [
    "what the search of the docs found before",
    [
      uses("search_docs", { query: "job" }, { found: [{ text: answer }] }),
      sends("POST", `${api}/v1/jobs`, 201, answer),
    ],
  ],
  ["what the agent had the product say back", [sends("POST", `${api}/echo`, 200, answer, { body: answer })]],
  [
    "what the agent had the product say back, in a command",
    [runs(`curl -d '${answer}' ${api}/echo`, answer, [{ ...created, body: answer }])],
  ],
  [
    "a message of the agent before",
    [() => [{ type: "message", text: `It will be ${id}` }], sends("GET", `${api}/v1/jobs`, 200, answer)],
  ],
  ["the summary of finish", [], "Done"],
  ["a page in the browser", [page(`${docs}/sample`, answer)]],
  [
    "a page of the docs that curl fetched before",
    [
      runs(`curl ${docs}/s`, answer, [{ url: `${docs}/s`, status: 200, body: answer }]),
      sends("POST", `${api}/v1/jobs`, 201, answer),
    ],
  ],
  [
    "a file sent to the docs' host",
    [runs("./upload", answer, [{ method: "PUT", url: `${docs}/x`, status: 500, body: answer }])],
  ],
  ["base64 of the answer", [runs("echo eyJpZCI6ImpvYl85MWYzIn0= | base64 -d", answer)]],
  ["a here-document", [runs(`cat <<E\n${answer}\nE`, answer)]],
  ["a variable of the shell", [runs(`J=${id}; echo $J`, id)]],
  ["a function that is called as the product's tool", [runs("acme() { echo job_$1; }; acme 91f3", id)]],
  ["a tool that the agent wrote", [write("bin/acme", "echo job_$1"), runs("PATH=bin:$PATH acme 91f3", id)]],
  ["a script of package.json", [write("package.json", '{"scripts":{"x":"echo job_$A"}}'), runs("npm run x", id)]],
  ["a reported friction", [uses("report_friction", { title: id }, { noted: true })]],
  ["an answer to a person's question", [uses("ask_human", { question: id }, { answer: id })]],
  ["too few words to mean anything", [sends("POST", `${api}/v1/jobs`, 201, answer)], '"id'],
];

test("no forgery passes, even if the judge always says yes", () => {
  expect(forgeries.length).toBeGreaterThanOrEqual(32);
  const passed = forgeries.filter(([, steps, claim]) => graded(steps, claim).outcome === "succeeded");
  expect(passed.map(([name]) => name)).toEqual([]);
});

const everyForgery = forgeries.map(([name, steps, claim = id]) => [name, steps, claim] as const);

test.each(everyForgery)("%s proves nothing", (_, steps, claim) => {
  const { outcome, scope, grade, dimensions } = graded(steps, claim);
  expect({ outcome, scope, grade }).toEqual({ outcome: "not_judged", scope: "conduct_only", grade: null });
  expect(dimensions.map(({ name }) => name)).not.toContain("Goal achievement");
});

// If no product is known, any host except the docs' may be the product, and a command's output may count. These must not
// count.
const isElsewhere = (text: string) => [api, "echo.example", "registry.npmjs"].some((host) => text.includes(host));
const local = everyForgery.filter(([, steps]) => !isElsewhere(JSON.stringify(steps.map((step) => step("t")))));
test.each(local)("%s proves nothing if no product is known", (_, steps, claim) => {
  expect(graded(steps, claim, null).outcome).not.toBe("succeeded");
});

describe("text that the product returned first", () => {
  const proofs: [string, Steps, claim?: string, product?: string | null][] = [
    ["an answer to a request", [sends("POST", `${api}/v1/jobs`, 201, answer, { body: '{"name":"nightly"}' })]],
    [
      "the same though the agent used it afterwards",
      [sends("POST", `${api}/v1/jobs`, 201, answer), sends("GET", `${api}/v1/jobs/${id}`, 200, answer)],
    ],
    ["an answer to a command that the egress saw", [runs(`curl -X POST ${api}/v1/jobs`, answer, [created])]],
    [
      "the same, printed in another form",
      [runs("node create.mjs", `id: ${id}`, [{ ...created, body: `{ "id" : "${id}" }` }])],
      `id: ${id}`,
    ],
    [
      "a page of the product in the browser",
      [
        uses(
          "browse",
          { action: "open", url: `${api}/jobs` },
          { status: 200, url: `${api}/jobs`, text: `Job ${id}` },
          ...sends("GET", `${api}/jobs`, 200, "")("t2").slice(1, 2),
        ),
      ],
    ],
    [
      "what was created on a host that docs and product share",
      [sends("POST", `${docs}/v1/jobs`, 201, answer)],
      id,
      null,
    ],
  ];
  const every = proofs.map(([name, steps, claim = id, product = api]) => [name, steps, claim, product] as const);
  test.each(every)("proves that something was done: %s", (_, steps, claim, product) => {
    const { outcome, scope, score } = graded(steps, claim, product);
    expect({ outcome, scope }).toEqual({ outcome: "succeeded", scope: "goal" });
    expect(score).toBeGreaterThan(90);
  });
});
