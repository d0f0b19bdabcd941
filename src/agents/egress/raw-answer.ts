import http from "node:http";
import { ofOneMessage } from "./headers.ts";

/** A plain-text response, for a socket that has no response object. `headers`: further ones, each with its line end. */
export function rawAnswer(status: number, text: string, headers = ""): string {
  const length = Buffer.byteLength(text) + 1;
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${text}\n`;
}

/** The status line and headers of a response, for a socket that has no response object. `connection`: the headers of this connection. */
export function rawHead(answer: http.IncomingMessage, connection: http.OutgoingHttpHeaders): string {
  const headers = Object.entries({ ...ofOneMessage(answer.headers), ...connection });
  const lines = headers.flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}: ${each}\r\n`));
  return `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${lines.join("")}\r\n`;
}
