import type { AgentEvent, Artifact } from "../agents/agent.ts";
import { secretsInLogin } from "../redaction/login-secrets.ts";
import { createSecretFilter } from "../redaction/redaction.ts";
import { mapTexts } from "../redaction/texts.ts";
import type { Line } from "./messages.ts";

/**
 * Returns a function that redacts the tokens of a login in the lines that a worker sends. Otherwise Redis would keep the tokens on its disk. `login`:
 * the content of the login file.
 */
export function createLoginRedaction(login: Uint8Array): (line: Line) => Line {
  const { redact } = createSecretFilter(secretsInLogin(new TextDecoder().decode(login)));
  const redactTexts = <T>(value: T): T => mapTexts(value, redact, { rename: redact }) as T;
  return (line) => {
    if (!("event" in line && "artifact" in line.event && line.event.artifact)) return redactTexts(line);
    const { artifact, ...event } = line.event;
    return { ...line, event: { ...redactTexts(event), artifact: redactArtifact(artifact, redact) } as AgentEvent };
  };
}

/** Latin-1 keeps every byte of an image as it is. */
function redactArtifact(artifact: Artifact, redact: (text: string) => string): Artifact {
  const { name, data } = artifact;
  if (data === undefined) return artifact;
  const content = Buffer.from(redact(Buffer.from(data, "base64").toString("latin1")), "latin1");
  return { name, bytes: content.length, data: content.toString("base64") };
}
