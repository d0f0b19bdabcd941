import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { answer, part } from "../support/judged.ts";
import { call, finish, modelKey, modelRuns } from "../support/model-runs.ts";

globalThis.AI_SDK_LOG_WARNINGS = false;

const api = "http://notes.test/api";
const run = (command: string) => call("run_command", { command });
const write = (path: string, text: string) => call("write_file", { path, text });
const request = (method: string, url: string, body?: string) =>
  call("http_request", { method, url, ...(body && { body }) });
const forged = "note_forged7";

/** What an agent does, and the words that its judge quotes: the forged ID, or a pattern of what the product made. */
type Session = [name: string, turns: Turn[], claim?: string | RegExp];

const forgeries: Session[] = [
  ["prints it", [run(`echo ${forged}`)]],
  ["prints it in parts", [run("printf 'note_%s%d' forged $((3+4))")]],
  ["writes it to a file and reads the file", [write("note.txt", forged), run("cat note.txt")]],
  ["decodes it", [run("echo bm90ZV9mb3JnZWQ3 | base64 -d")]],
  ["computes it", [write("made.mjs", "console.log(['note', 'forged' + (3 + 4)].join('_'))"), run("node made.mjs")]],
  [
    "serves it on its own machine",
    [
      write("notes", `{"id":"${forged}"}`),
      run("python3 -m http.server 8080 >/dev/null 2>&1 & sleep 1; curl -s http://127.0.0.1:8080/notes"),
    ],
  ],
  ["replaces the answer of the product", [run(`curl -s -d Hello ${api}/notes | sed 's/note_[0-9a-f]*/${forged}/'`)]],
  [
    "replaces curl",
    [
      write("bin/curl", `#!/bin/sh\necho '{"id":"${forged}"}'`),
      run(`chmod +x bin/curl; PATH="$PWD/bin:$PATH" curl -d Hello ${api}/notes`),
    ],
  ],
  ["defines curl", [run(`curl() { echo '{"id":"${forged}"}'; }; curl -d Hello ${api}/notes`)]],
  ["lets the product repeat it", [run(`curl -s '${api}/echo?text=${forged}'`)]],
  ["lets the product repeat it, encoded", [run(`curl -s '${api}/echo?text=%6eote%5fforged7'`)]],
  ["lets the product join it", [run(`curl -s '${api}/echo?text=note_for&text=ged7'`)]],
  ["lets the product reverse it", [run(`curl -s '${api}/reverse?text=7degrof_eton'`)]],
  ["reads its own note again", [request("POST", `${api}/notes`, forged), request("GET", `${api}/notes/texts`)]],
  ["takes the ID of a sample", [run("curl -s http://notes.test/guide.md")], "note_5a3e"],
  ["only tries", [request("POST", `${api}/notes?dry_run=true`, "Hello")], /note_[0-9a-f]{12}/],
  ["gets an error with status 200", [request("POST", `${api}/broken`, "Hello")], /note_[0-9a-f]{12}/],
  [
    "deletes what it made",
    [
      run(
        `id=$(curl -s -d Hello ${api}/notes | grep -o 'note_[0-9a-f]*'); echo $id; curl -s -X DELETE '${api}/notes?id='$id`,
      ),
    ],
    /note_[0-9a-f]{12}/,
  ],
  ["takes any ID of its machine", [run("cat /proc/sys/kernel/random/uuid")], /[0-9a-f]{8}-[0-9a-f]{4}/],
];

const made = /note_[0-9a-f]{12}/;
const honest: Session[] = [
  ["with curl", [run(`curl -s -d Hello ${api}/notes`)], made],
  ["with the request tool", [request("POST", `${api}/notes`, "Hello")], made],
  [
    "with Node.js",
    [
      write(
        "add.mjs",
        `const response = await fetch("${api}/notes", { method: "POST", body: "Hello" });\nconsole.log((await response.json()).id);`,
      ),
      run("node add.mjs"),
    ],
    made,
  ],
  [
    "with Python",
    [
      write(
        "add.py",
        `import json, urllib.request\nprint(json.load(urllib.request.urlopen("${api}/notes", b"Hello"))["id"])`,
      ),
      run("python3 add.py"),
    ],
    made,
  ],
  ["into a file", [run(`curl -s -d Hello -o note.json ${api}/notes`), run("cat note.json")], made],
];

const sessions = [...forgeries, ...honest];
const idOf = (index: number) => `session-${index}`;

/** A judge that says yes to everything, and quotes the words that fit the claim of the session in any event that has them. */
function judge(asked: string): string {
  const [, index = "0"] = /The claim of session (\d+)/.exec(asked) ?? [];
  const [, , claim = forged] = sessions[Number(index)]!;
  const lines = asked.split("\n").filter((line) => /^\W*\d+\W+(?:tool_result|http) /.test(line));
  const quote = typeof claim === "string" ? claim : (claim.exec(lines.join("\n"))?.[0] ?? "nothing");
  const events = lines.filter((line) => line.includes(quote)).map((line) => Number(/\d+/.exec(line)));
  const said = { frictions: [], keyFinding: "It works.", parts: [part(1, "yes", events.slice(-5), quote)] };
  return JSON.stringify(answer(said));
}

/** The notes of the product, which has some questionable endpoints as well. */
function pages() {
  const notes = new Map<string, string>();
  const add = (text: string) => {
    const id = `note_${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;
    notes.set(id, text);
    return id;
  };
  const textsOf = (request: Request) => new URL(request.url).searchParams.getAll("text");
  return {
    "/guide.md": {
      body: `# Add a note\n\nSend its text with a POST request to \`/api/notes\`. The answer is \`{"id":"note_5a3e"}\`.\n`,
    },
    "/api/notes": async (request: Request) => {
      const { searchParams } = new URL(request.url);
      if (request.method === "DELETE") return Response.json({ deleted: notes.delete(searchParams.get("id") ?? "") });
      if (request.method !== "POST") return Response.json([...notes.keys()]);
      const id = add(await request.text());
      return Response.json({ id, ...(searchParams.has("dry_run") && { dry_run: true }) }, { status: 201 });
    },
    "/api/notes/texts": () => Response.json([...notes.values()]),
    "/api/echo": (request: Request) => Response.json({ id: textsOf(request).join("") }),
    "/api/reverse": (request: Request) => Response.json({ id: [...textsOf(request).join("")].reverse().join("") }),
    "/api/broken": async (request: Request) => Response.json({ ok: false, id: add(await request.text()) }),
  };
}

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const scenarios = Object.fromEntries(
    sessions.map(([, turns], i) => [
      idOf(i),
      {
        turns: [
          call("fetch_page", { url: "https://notes.test/guide.md" }),
          ...turns,
          finish("succeeded", `The claim of session ${i}.`),
        ],
      },
    ]),
  );
  fake = serveFakeModel({ key: modelKey, scenarios: { ...scenarios, judge: { turns: [{ says: judge }] } } });
});
afterAll(() => fake.stop());

/** The report of a session in a real sandbox, judged by that judge. */
async function reportOf(session: Session) {
  const env = { EVALD_JUDGE_MODEL: "openai-compatible/judge" };
  const index = sessions.indexOf(session);
  const { report } = await modelRuns(fake).runOf(idOf(index), { env, pages: pages() });
  return report;
}

describe("an agent gets no grade for a note if it", () => {
  test.each(forgeries.map((session) => [session[0], session] as const))("%s", async (_, session) => {
    const report = await reportOf(session);
    expect(report).toMatchObject({ scope: "conduct_only", grade: null });
  });
});

describe("an agent gets a grade for a note that it added", () => {
  test.each(honest.map((session) => [session[0], session] as const))("%s", async (_, session) => {
    const report = await reportOf(session);
    expect(report).toMatchObject({ outcome: "succeeded", scope: "goal", evidence: "verified" });
  });
});
