import http from "node:http";
import type net from "node:net";
import { pipeline } from "node:stream";
import { ofOneMessage, sourceHeader, toSourceHeader } from "../egress/headers.ts";
import { rawAnswer, rawHead } from "../egress/raw-answer.ts";
import type { Source } from "../reader.ts";

/** Where a request goes, and the credentials of the run with the ID of the tool call that made it. */
export type Call = { url: string; credentials: string | undefined };

const gone = "evald: the proxy of this run has closed";

type Options = {
  egressPath: string;
  /** How the agent found a URL. */
  sourceOf: (url: string) => Source;
  /** Called with each response before its body is read. */
  watch: (method: string, url: string, answer: http.IncomingMessage) => void;
};

/** Sends requests to the egress proxy with their absolute URLs, and its responses back. */
export function createForwarding({ egressPath, sourceOf, watch }: Options) {
  const send = ({ url, credentials }: Call, request: http.IncomingMessage, headers: http.OutgoingHttpHeaders) =>
    http.request({
      socketPath: egressPath,
      method: request.method ?? "GET",
      path: url,
      agent: false,
      maxHeaderSize: 64 * 1024,
      headers: {
        ...ofOneMessage(request.headers),
        ...headers,
        host: new URL(url).host,
        [sourceHeader]: toSourceHeader(sourceOf(url)),
        ...(credentials !== undefined && { "proxy-authorization": credentials }),
      },
    });

  return {
    forward(call: Call | null, request: http.IncomingMessage, response: http.ServerResponse): void {
      if (!call) return void response.writeHead(400, plainText).end(`${badRequest}\n`);
      const { "transfer-encoding": chunked } = request.headers;
      const upstream = send(call, request, chunked ? { "transfer-encoding": "chunked" } : {});
      upstream.on("error", () => {
        if (response.headersSent) response.destroy();
        else response.writeHead(502, plainText).end(`${gone}\n`);
      });
      upstream.on("response", (answer) => {
        watch(request.method ?? "GET", call.url, answer);
        response.writeHead(answer.statusCode ?? 502, ofOneMessage(answer.headers));
        pipeline(answer, response, (error) => {
          if (error) response.destroy();
        });
      });
      response.on("close", () => upstream.destroy());
      if (hasBody(request)) pipeline(request, upstream, () => {});
      else upstream.end();
    },

    upgrade(call: Call | null, request: http.IncomingMessage, socket: net.Socket, head: Buffer): void {
      socket.on("error", () => {});
      if (!call) return void socket.end(rawAnswer(400, badRequest));
      const upstream = send(call, request, { connection: "upgrade", upgrade: request.headers.upgrade });
      upstream.on("error", () => socket.end(rawAnswer(502, gone)));
      upstream.on("response", (answer) => {
        socket.write(rawHead(answer, { connection: "close" }));
        pipeline(answer, socket, () => {});
      });
      upstream.on("upgrade", (answer: http.IncomingMessage, outer: net.Socket, first: Buffer) => {
        socket.write(rawHead(answer, { connection: "upgrade", upgrade: answer.headers.upgrade }));
        socket.write(first);
        outer.write(head);
        splice(socket, outer);
      });
      socket.on("close", () => upstream.destroy());
      upstream.end();
    },
  };
}

const plainText = { "content-type": "text/plain; charset=utf-8", connection: "close" };
const badRequest = "This is the evald proxy. Send an absolute http or https URL.";

const hasBody = ({ headers }: http.IncomingMessage) =>
  Number(headers["content-length"]) > 0 || headers["transfer-encoding"] !== undefined;

/** Relays bytes in both directions until one side closes. */
export function splice(inner: net.Socket, outer: net.Socket): void {
  for (const [from, to] of [
    [inner, outer],
    [outer, inner],
  ] as const) {
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroySoon());
    from.pipe(to);
  }
}
