import type { ModelMessage } from "ai";

/** What a model is given to read at once, in characters, unless its provider says that it is too much: some 100,000 tokens. */
export const usualRoom = 400_000;
const gone = { type: "text", value: "Omitted to save space. Call the tool again if you need it." } as const;

const sizeOf = (value: unknown) => JSON.stringify(value)?.length ?? 0;
const charsOf = (messages: ModelMessage[]) => messages.reduce((sum, { content }) => sum + sizeOf(content), 0);

/** Takes the oldest results of tools out of a conversation that has become longer than `maxChars`; what was said and done stays. */
export function forget(messages: ModelMessage[], maxChars: number): void {
  let chars = charsOf(messages);
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

/** The room of a model that takes no conversation of this length; null where nothing is left that could be taken out. */
export function lessRoom(messages: ModelMessage[]): number | null {
  const before = charsOf(messages);
  const room = Math.floor(before * 0.8);
  forget(messages, room);
  return charsOf(messages) < before ? room : null;
}
