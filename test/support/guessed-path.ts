import type { AgentEvent } from "../../src/agents/agent.ts";
import type { Answer } from "../../src/grading/judge/rubric.ts";

const docs = "https://docs.notes.example";
const api = "https://notes.example";
export const guide = `${docs}/guide.html`;
export const goal = "A note was added. Its id was printed.";

/** The guide. Its only sample, on line 7, sends a request to a path that responds with 404. */
const guideText = `# Add a note

Notes are lines of text. You add one with one request.

## Example

    curl -d 'Hello' ${api}/v1/notes

The response contains the id of the note.`;

const call = (id: string, tool: string, input: Record<string, unknown>): AgentEvent => {
  return { type: "tool_call", id, tool, input };
};
const result = (id: string, tool: string, ok: boolean, output: Record<string, unknown>): AgentEvent => {
  return { type: "tool_result", id, tool, ok, output };
};
const thought = (text: string): AgentEvent => ({ type: "thought", text, by: "model" });
const usage: AgentEvent = {
  type: "usage",
  ...{ model: "anthropic/claude-test", api: "anthropic", callId: "c1", attempt: 1, key: "org" },
  ...{ inputTokens: 4200, outputTokens: 130, cachedTokens: 0, costUsd: 0.01, ms: 900 },
} as unknown as AgentEvent;

const asked = (id: string, method: string, url: string, status: number, foundOn: string | null = null): AgentEvent => ({
  type: "http",
  ...{ id, method, url, mappedUrl: null, status, ms: 120, bytes: 300, contentType: "text/html", error: null },
  ...{ provenance: foundOn ? "link" : "given", foundOn, purpose: "task" },
});

function reads(id: string, url: string, title: string, text: string, foundOn: string | null = null): AgentEvent[] {
  return [
    usage,
    thought(`I read ${title}.`),
    call(id, "fetch_page", { url }),
    asked(id, "GET", url, 200, foundOn),
    { type: "milestone", name: "page_read", detail: { url, title, chars: 900, form: "html" as const } },
    result(id, "fetch_page", true, { url, text }),
  ];
}

/** Posts a note with a command, or with the tool for requests. */
function posts(id: string, path: string, status: number, way: "command" | "request"): AgentEvent[] {
  const url = api + path;
  const body = status < 400 ? '{"id":"n1","createdAt":"2026-11-21T09:31:04Z"}' : "404 page not found";
  const before = [usage, thought(`I try ${path}.`)];
  if (way === "request")
    return [
      ...before,
      call(id, "http_request", { url, method: "POST", body: "Hello" }),
      asked(id, "POST", url, status),
      result(id, "http_request", status < 400, { status, headers: {}, body }),
    ];
  const exitCode = status < 400 ? 0 : 22;
  return [
    ...before,
    call(id, "run_command", { command: `curl -fsS -d 'Hello' ${url}` }),
    { ...asked(id, "POST", url, status), body } as AgentEvent,
    result(id, "run_command", exitCode === 0, {
      exitCode,
      stdout: exitCode === 0 ? body : "",
      stderr: exitCode === 0 ? "" : "curl: (22) The requested URL returned error: 404",
    }),
  ];
}

/**
 * A model agent's session on docs with one mistake: the guide's only sample posts to a path that answers 404. The agent
 * guesses three paths; the last one works.
 */
export function guessedPathSession(way: "command" | "request" = "command"): AgentEvent[] {
  const detail = {
    agent: "llm",
    version: "1",
    kind: "model" as const,
    model: "anthropic/claude-test",
    goal,
    starts: [`${docs}/`],
    product: `${api}/`,
  };
  return [
    { type: "milestone", name: "started", detail },
    ...reads("t1", `${docs}/`, "Notes", "# Notes\n\nRead [Add a note](guide.html)."),
    ...reads("t2", guide, "Add a note", guideText, `${docs}/`),
    ...posts("t3", "/v1/notes", 404, way),
    ...posts("t4", "/api/v1/notes", 404, way),
    ...posts("t5", "/notes", 404, way),
    ...posts("t6", "/api/notes", 201, way),
    call("t7", "finish", { outcome: "succeeded", summary: "The note n1 was added." }),
    result("t7", "finish", true, { outcome: "succeeded" }),
    { type: "end", outcome: "succeeded", reason: "The note n1 was added." },
  ];
}

/** A judge's answer about that session. Like real judges, it cites the result of the failed call, and the page in a second friction. */
export function guessedPathAnswer(): Answer {
  const events = guessedPathSession().map((event, seq) => ({ seq, event }));
  const seqOf = (type: AgentEvent["type"], id: string) =>
    events.find(({ event }) => event.type === type && "id" in event && event.id === id)?.seq ?? 0;
  const done = seqOf("tool_result", "t6");
  return {
    parts: [
      {
        part: 1,
        met: "yes",
        events: [done],
        quote: '"createdAt":"2026-11-21T09:31:04Z"',
        why: "The API answered 201.",
      },
      { part: 2, met: "yes", events: [done], quote: '"id":"n1"', why: "The response contains the id." },
    ],
    frictions: [
      {
        ...{ finding: "", severity: "high", phase: "integration", category: "misleading_docs" },
        events: [seqOf("tool_result", "t2"), seqOf("tool_result", "t3")],
        quote: "/v1/notes",
        title: "The sample in the guide posts to a path that answers 404",
        why: "The agent followed the sample and had to guess the path.",
        advice: "Use /api/notes in the sample.",
      },
    ],
    keyFinding: "The guide’s only sample posts to a path that answers 404.",
    verdict: "The note was added, after three guesses.",
    summary: { whatWorked: "The API.", whatDidnt: "The sample in the guide." },
    confidence: 0.9,
  };
}
