import { version } from "../../package.json" with { type: "json" };

/** How this service names itself in requests. */
export const userAgent = `evald/${version} (agent-experience evaluation)`;

/** The Accept header of agents that prefer Markdown to HTML. */
export const readerAccept = "text/markdown;q=1, text/html;q=0.8, text/plain;q=0.7";
