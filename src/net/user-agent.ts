import { version } from "../../package.json" with { type: "json" };

/** How this service names itself in requests. */
export const userAgent = `evald/${version} (agent-experience evaluation)`;
