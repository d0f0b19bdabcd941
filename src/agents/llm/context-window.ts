import type { LanguageModelV4Message } from "@ai-sdk/provider";

/** Maximum characters of a conversation, about 100,000 tokens, unless the provider says that this is too long. */
export const defaultMaxChars = 400_000;
const omission = { type: "text", value: "Omitted to save space. Call the tool again if you need it." } as const;

const sizeOf = (value: unknown) => JSON.stringify(value)?.length ?? 0;
const charsOf = (messages: LanguageModelV4Message[]) => messages.reduce((sum, { content }) => sum + sizeOf(content), 0);

/** Removes the oldest tool results from a conversation longer than `maxChars`; messages and calls stay. */
export function removeOldResults(messages: LanguageModelV4Message[], maxChars: number): void {
  let chars = charsOf(messages);
  if (chars <= maxChars) return;
  // It removes more than needed. The beginning then stays the same for several steps, and so does the provider's cache of it.
  for (const { role, content } of messages) {
    if (role !== "tool") continue;
    for (const part of content) {
      if (chars <= maxChars / 2) return;
      if (part.type !== "tool-result" || part.output === omission) continue;
      chars -= sizeOf(part.output);
      part.output = omission;
    }
  }
}

/** A smaller limit for a model that rejected a conversation of this length; null if nothing is left to remove. */
export function findSmallerLimit(messages: LanguageModelV4Message[]): number | null {
  const before = charsOf(messages);
  const limit = Math.floor(before * 0.8);
  removeOldResults(messages, limit);
  return charsOf(messages) < before ? limit : null;
}
