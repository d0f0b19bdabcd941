/** The start of the text of a response. Once it has more than `maxChars` characters, the rest is not read. */
export async function readTextStart({ body }: Response, maxChars: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > maxChars) break;
  }
  return text;
}
