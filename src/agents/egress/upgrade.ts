import type http from "node:http";
import type net from "node:net";
import { pipeline } from "node:stream/promises";
import { GuardError } from "../../net/failure.ts";
import { openRequest } from "../../net/http-request.ts";
import { resolve } from "../../net/resolve.ts";
import { connectMs, type Passage, permit, startRequest, statusOf } from "./connection.ts";
import { freshAgents, toSent } from "./forward.ts";
import { sourceHeader, toSource } from "./headers.ts";
import { rawAnswer, rawHead } from "./raw-answer.ts";
import { join } from "./tunnel.ts";

/** Forwards a request that changes the protocol of its connection, such as a WebSocket, and relays bytes in both directions from then on. */
export async function upgrade(
  passage: Passage,
  request: http.IncomingMessage,
  socket: net.Socket,
  head: Buffer,
  callId: string | null,
): Promise<void> {
  socket.on("error", () => {});
  const url = /^https?:\/\//i.test(request.url ?? "") ? URL.parse(request.url ?? "") : null;
  if (!url) {
    socket.end(rawAnswer(400, "This is the evald proxy. Send an absolute http or https URL."));
    return;
  }
  url.username = url.password = "";
  const proxied = startRequest(passage, request.method ?? "GET", url, {
    callId,
    source: toSource(request.headers[sourceHeader]),
  });
  socket.on("close", () => {
    if (proxied.record.status === null) proxied.stop(new GuardError("aborted", url.href, "The client disconnected"));
  });
  await proxied.run(async () => {
    const real = passage.mapping.toReal(url);
    proxied.record.mappedUrl = passage.mapping.toShown(url)?.href ?? null;
    if (!real) permit(passage, url);
    const target = real ?? url;
    const addresses = await resolve(target, passage.places, passage.lookup, proxied.signal);
    proxied.signal.throwIfAborted();
    const upstream = openRequest({
      url: target,
      method: request.method ?? "GET",
      headers: {
        ...toSent(request.headers, passage.token),
        connection: "upgrade",
        upgrade: request.headers.upgrade ?? "",
      },
      addresses,
      agent: freshAgents[target.protocol as keyof typeof freshAgents],
      connectMs,
    });
    const stop = () => upstream.destroy(proxied.signal.reason);
    proxied.signal.addEventListener("abort", stop);
    try {
      const { answer, outer, first } = await answerOf(upstream);
      proxied.record.status = answer.statusCode ?? null;
      proxied.record.contentType = answer.headers["content-type"] ?? null;
      if (!outer) {
        socket.write(rawHead(answer, { connection: "close" }));
        await pipeline(answer, socket);
        return;
      }
      socket.write(rawHead(answer, { connection: "upgrade", upgrade: answer.headers.upgrade }));
      socket.write(first);
      await join(passage, proxied, socket, outer, head);
    } finally {
      proxied.signal.removeEventListener("abort", stop);
      upstream.destroy();
    }
  });
  if (!proxied.failure) return;
  if (proxied.record.status === null && !socket.destroyed)
    socket.end(rawAnswer(statusOf(proxied.failure), `evald: ${proxied.failure.message}`));
  else socket.destroy();
}

/** The response of a server: `outer` is its connection if it accepted the upgrade, and `first` what it sent on it already. */
function answerOf(upstream: http.ClientRequest) {
  type Answer = { answer: http.IncomingMessage; outer: net.Socket | null; first: Buffer };
  const { promise, resolve: done, reject } = Promise.withResolvers<Answer>();
  upstream.on("response", (answer) => done({ answer, outer: null, first: Buffer.alloc(0) }));
  upstream.on("upgrade", (answer, outer, first) => done({ answer, outer: outer as net.Socket, first }));
  upstream.on("error", reject);
  upstream.end();
  return promise;
}
