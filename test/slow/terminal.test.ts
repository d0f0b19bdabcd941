import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { type Demo, demo } from "../support/demo.ts";
import { buildExecutable, call, emptyFolder, executable } from "../support/executable.ts";

let app: Demo;
let server: ReturnType<typeof Bun.serve>;
let service: Record<string, string>;
const cwd = emptyFolder();

beforeAll(async () => {
  await buildExecutable();
  app = await demo();
  const titles = [
    "上传一个文件并打印它的网址以及所有其他信息的说明文档",
    "🚀👩‍👩‍👧‍👦 Ship it 🚀🚀🚀 with a family of emoji",
    "ارفع ملفًا واطبع عنوانه ثم احذفه من الخادم",
  ];
  for (const title of titles) createPrompt(app.service.ctx, app.a.org, { title, text: title });
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
  service = { EVALD_URL: server.url.origin, EVALD_KEY: app.a.key };
  await call(["org", "create", "Acme"], { cwd });
  await call(["key", "create", "--name", "a key with a long name for the pipeline of the docs"], { cwd });
}, 300_000);

afterAll(async () => {
  server.stop(true);
  await app.stop();
});

type Terminal = {
  columns?: number;
  env?: Record<string, string>;
  under?: string[];
  onOutput?: (shown: string, type: (keys: string) => void) => void;
};

/** Runs a command in a terminal. `onOutput` sees all that it shows so far, and can type. Returns its exit code, and what it shows. */
async function show(args: string[], { columns = 80, env = service, under = [], onOutput }: Terminal = {}) {
  let shown = "";
  const decoder = new TextDecoder();
  const child = Bun.spawn([...under, executable, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent", TERM: "xterm-256color", ...env },
    terminal: {
      cols: columns,
      rows: 40,
      data(terminal, bytes) {
        shown += decoder.decode(bytes, { stream: true });
        onOutput?.(shown, (keys) => terminal.write(keys));
      },
    },
  });
  return { code: await child.exited, shown, lines: shown.trimEnd().split("\r\n") };
}

const widthOf = (lines: string[]) => Math.max(...lines.map((line) => Bun.stringWidth(line)));

describe("a table is as wide as the terminal at most", () => {
  const prompt = "Search the notes of a team";
  const ofService = [
    ["runs", "--limit", "5"],
    ["prompt", "list"],
    ["prompt", "show", prompt],
    ["provider", "list"],
    ["friction", "Add a note"],
    ["trends", prompt],
    ["matrix", "--tag", "nightly"],
    ["suite", "list"],
    ["inbox"],
    ["why", prompt],
    ["spending"],
    ["destination", "list"],
    ["trust", "list"],
    ["archive", "list"],
    ["audit"],
    ["schedule", "exceptions"],
    ["whoami"],
  ];
  const ofData = [
    ["org", "list"],
    ["key", "list"],
    ["agent", "list"],
    ["model", "list"],
    ["queue", "show"],
    ["queue", "failures"],
    ["doctor"],
  ];
  for (const columns of [40, 80, 200])
    test(`${columns} columns`, async () => {
      for (const [commands, env] of [[ofService, service] as const, [ofData, {}] as const])
        for (const args of commands) {
          // Messages to stderr are sentences, which the terminal wraps.
          const { lines } = await show([...args], { columns, env, under: ["sh", "-c", 'exec "$0" "$@" 2>/dev/null'] });
          expect([args, lines.length > 0, widthOf(lines) <= columns]).toEqual([args, true, true]);
        }
    }, 120_000);
});

test("a table without room for its columns lists the fields of each row, and IDs stay whole", async () => {
  const { runId } = (await app.send("GET", "/api/v1/runs?limit=1")).body[0];
  const narrow = (await show(["runs", "--limit", "1"], { columns: 40 })).lines;
  expect(narrow.slice(0, 2)).toEqual([runId, expect.stringMatching(/^ {2}STATUS {5}\w+$/)]);
  const wide = (await show(["runs", "--limit", "1"], { columns: 200 })).lines;
  expect(wide[1]).toStartWith(`${runId}  `);
});

test("a pipe gets whole cells without colors, and a terminal colors unless NO_COLOR is set", async () => {
  const { slug } = (await app.send("GET", "/api/v1/reports?limit=1")).body[0];
  const styles = "\u001b[";
  expect((await show(["report", slug])).shown).toContain(styles);
  expect((await show(["report", slug], { env: { ...service, NO_COLOR: "1" } })).shown).not.toContain(styles);
  for (const args of [["report", slug], ["runs"], ["inbox"], ["why", "Search the notes of a team"]]) {
    const { code, stdout } = await call(args, { cwd, env: service });
    expect([args, code, stdout.includes(styles), stdout.includes("…  ")]).toEqual([args, 0, false, false]);
  }
});

test("each event of a session takes one line", async () => {
  const { slug } = (await app.send("GET", "/api/v1/reports?limit=1")).body[0];
  const { total } = (await app.send("GET", `/api/v1/reports/${slug}/trace?limit=1`)).body;
  for (const columns of [40, 80]) {
    const { lines } = await show(["trace", slug], { columns, env: { ...service, NO_COLOR: "1" } });
    expect([lines.length, widthOf(lines) <= columns]).toEqual([total, true]);
  }
  const { stdout } = await call(["trace", slug, "--json", "--types", "http"], { cwd, env: service });
  const types = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).type);
  expect([types.length > 0, new Set(types)]).toEqual([true, new Set(["http"])]);
});

test("trace --follow prints a session as it comes until the run ends, and rerun starts the run again", async () => {
  const { body: prompts } = await app.send("GET", "/api/v1/prompts");
  const promptId = prompts.find(({ title }: { title: string }) => title === "Add a note").id;
  const { runId } = (await app.send("POST", `/api/v1/prompts/${promptId}/run`, { body: { urlMap: {} } })).body;
  const soFar = await call(["trace", runId, "--json"], { cwd, env: service });
  expect([soFar.code, soFar.stderr]).toEqual([0, expect.stringContaining(runId)]);
  const rerun = await call(["rerun", runId, "--jq", ".runs[].prompt.title"], { cwd, env: service });
  expect([rerun.code, rerun.stdout]).toEqual([0, "Add a note\n"]);
  let isCancelled = false;
  const { code, lines } = await show(["trace", runId, "--follow"], {
    onOutput() {
      if (!isCancelled) void app.send("POST", `/api/v1/runs/${runId}/cancel`);
      isCancelled = true;
    },
  });
  expect([code, lines.at(-1)]).toEqual([0, `Run ${runId}: failed`]);
}, 30_000);

test("--jq prints what jq prints", async () => {
  const { slug } = (await app.send("GET", "/api/v1/reports?limit=1")).body[0];
  for (const [args, expression] of [
    [["runs", "--limit", "20"], '.[] | select(.status == "completed") | [.runId, .report.score] | @tsv'],
    [["report", slug], "{score, fixes: [.recommendations[].title], n: (.frictionPoints | length)}"],
    [["prompt", "list"], 'map("  " + .title + "\t") | sort | .[]'],
    [["matrix"], ".prompts | group_by(.title) | map({(.[0].title): length}) | add"],
    [["api", "GET", "/reports", "--paginate"], "[.[].score | select(. != null)] | add / length"],
  ] as const) {
    const whole = await call(args[0] === "api" ? [...args] : [...args, "--json"], { cwd, env: service });
    const real = Bun.spawnSync(["jq", "-r", expression], { stdin: Buffer.from(whole.stdout) });
    const own = await call([...args, "--jq", expression], { cwd, env: service });
    expect([args, own.code, own.stdout]).toEqual([args, 0, real.stdout.toString()]);
    expect(own.stdout.length).toBeGreaterThan(3);
  }
  expect(await call(["runs", "--jq", "empty"], { cwd, env: service })).toMatchObject({ code: 0, stdout: "" });
  for (const expression of [".[", "nope", ".[0].runId.x"]) {
    const { code, stdout, stderr } = await call(["runs", "--jq", expression], { cwd, env: service });
    expect([expression, code, stdout, stderr]).toEqual([expression, 2, "", expect.stringContaining("--jq")]);
  }
});

test("api sends fields as the query of a GET and the body of others, and prints errors as JSON", async () => {
  const api = async (...args: string[]) => {
    const { code, stdout } = await call(["api", ...args], { cwd, env: service });
    return [code, JSON.parse(stdout)];
  };
  const all = (await app.send("GET", "/api/v1/runs?limit=1000")).body.length;
  expect((await api("get", "/runs", "-F", "limit=2"))[1].length).toBe(2);
  expect((await api("GET", "api/v1/runs?limit=7", "--paginate"))[1].length).toBe(all);
  const [, prompt] = await api(
    "POST",
    "/prompts",
    "-f",
    "title=12",
    "-f",
    "text=Read.",
    "-F",
    "runsPerEval=2",
    "-F",
    'tags=["a"]',
  );
  expect(prompt).toMatchObject({ title: "12", runsPerEval: 2, tags: ["a"] });
  await Bun.write(`${cwd}/patch.json`, '{"status": "paused"}');
  const path = `/prompts/${prompt.id}`;
  expect(await api("PATCH", path, "--input", "patch.json")).toMatchObject([0, { status: "paused" }]);
  expect(await api("GET", "/prompts/nope")).toMatchObject([2, { error: "not_found" }]);
  for (const args of [
    ["GET", "/trends", "--paginate"],
    ["PATCH", path, "--paginate"],
    ["PATCH", path, "--input", "missing.json"],
    ["GET", `${service.EVALD_URL}/api/v1/runs`],
  ])
    expect(await api(...args)).toMatchObject([2, { error: "bad_request" }]);
});

test("Ctrl-C in a terminal asks: a key waits on, c cancels the run, and another Ctrl-C leaves it", async () => {
  const keys = { wait: "x", cancel: "c", leave: "\u0003" };
  async function interrupt(answers: string[]) {
    const left = ["\u0003", ...answers];
    let questions = 0;
    let runId = "";
    const { code } = await show(["run", "Add a note", "--wait"], {
      columns: 200,
      onOutput(shown, type) {
        runId ||= /^Run (\S+): (pending|running)/m.exec(shown)?.[1] ?? "";
        const asked = shown.split("Ctrl-C again").length - 1;
        if (
          runId === "" ||
          (left.length < answers.length + 1 && asked === questions && !/Waiting on\.\s*$/.test(shown))
        )
          return;
        questions = asked;
        const key = left.shift();
        if (key) type(key);
      },
    });
    return { code, run: (await app.send("GET", `/api/v1/runs/${runId}`)).body };
  }
  const left = await interrupt([keys.leave]);
  expect([left.code, left.run.completedAt]).toEqual([130, null]);
  const cancelled = await interrupt([keys.wait, "\u0003", keys.cancel]);
  expect([cancelled.code, cancelled.run.failure?.cause]).toEqual([3, "cancelled"]);
}, 60_000);
