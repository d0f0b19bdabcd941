import { expect, test } from "bun:test";
import { startRecord, wasCut } from "../src/agents/coding/record.ts";
import { createTemporaryFolder } from "../src/agents/sockets.ts";
import { viaSocket } from "../src/net/upstream.ts";

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const whole = [chunk({ content: "Hello" }), chunk({}, "stop"), "data: [DONE]\n\n"].join("");
const half = chunk({ content: "Hel" });

/** Sends requests of an agent through a record, to a provider that gives these answers. */
async function recordOf(...answers: [type: string, body: string][]) {
  const { socketPath } = createTemporaryFolder("gateway");
  const provider = Bun.serve({
    unix: socketPath,
    fetch() {
      const [type, body] = answers.shift() ?? ["text/plain", ""];
      return new Response(body, { headers: { "content-type": type } });
    },
  });
  const nothing = () => {};
  const record = startRecord(socketPath, { onCall: nothing, onResult: nothing, onRequest: nothing });
  const send = viaSocket(record.socketPath);
  const body = JSON.stringify({ messages: [], tools: [{ type: "function" }] });
  while (answers.length > 0)
    await (await send("http://gateway/openai/v1/chat/completions", { method: "POST", body })).text();
  await record.close();
  await provider.stop(true);
  return record;
}

test.each<[string, boolean, ...[type: string, body: string][]]>([
  ["a whole stream", false, ["text/event-stream", whole]],
  ["a stream that ends in the middle", true, ["text/event-stream", half]],
  ["a page in place of an answer", true, ["text/html", "<h1>Bad gateway</h1>"]],
  ["a cut stream that the agent asked for again", false, ["text/event-stream", half], ["text/event-stream", whole]],
  ["a cut stream after a whole one", true, ["text/event-stream", whole], ["text/event-stream", half]],
  ["streams of a provider that marks no end", false, ["text/event-stream", half], ["text/event-stream", half]],
])("the last answer of a model is known to be cut or not: %s", async (_, isCut, ...answers) => {
  expect(wasCut(await recordOf(...answers))).toBe(isCut);
});
