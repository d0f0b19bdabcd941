import type { ModelMessage } from "ai";

/** What a model is given to read at once, in characters: some 100,000 tokens. */
const maxChars = 400_000;
const gone = { type: "text", value: "Left out to make room. Call the tool again if you need it." } as const;

const sizeOf = (value: unknown) => JSON.stringify(value)?.length ?? 0;

/** Takes the oldest results of tools out of a conversation that has become too long; what was said and done stays. */
export function forget(messages: ModelMessage[]): void {
  let chars = messages.reduce((sum, { content }) => sum + sizeOf(content), 0);
  if (chars <= maxChars) return;
  // More than is needed, so that a provider's cache of the beginning is not lost at every step.
  for (const { role, content } of messages) {
    if (role !== "tool") continue;
    for (const part of content) {
      if (chars <= maxChars / 2) return;
      if (part.type !== "tool-result" || part.output === gone) continue;
      chars -= sizeOf(part.output);
      part.output = gone;
    }
  }
}
