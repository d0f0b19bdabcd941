/**
 * Results of tools. The SDKs write each response as a whole, which takes longer than most tools. So a tool's result is written here, once for a
 * value that is returned many times, and the SDK writes a placeholder.
 */

/** What a tool returned. The same as text, for clients that don't read structured content, is added when it is written. */
export type ToolResult = { structuredContent: object };

export const isToolResult = (result: object): result is ToolResult => "structuredContent" in result;

/** The result as an object, for responses that can't have a placeholder: batches and streams. */
export const withText = ({ structuredContent }: ToolResult) => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent) }],
  structuredContent,
});

const membersOf = (result: object): string => JSON.stringify(result).slice(1, -1);

export const placeholder = { content: [] };
const placeholderMembers = membersOf(placeholder);

/** Kept as long as the values: a cached report is returned many times. */
const written = new WeakMap<object, string>();

/** The members of a result as JSON, for `fill`. */
export function toMembers(result: ToolResult): string {
  const { structuredContent } = result;
  const known = written.get(structuredContent);
  if (known !== undefined) return known;
  const members = membersOf(withText(result));
  written.set(structuredContent, members);
  return members;
}

/** Replaces the placeholder in a response, which begins with its result. */
export async function fill(response: Response, members: string): Promise<Response> {
  const text = await response.text();
  return new Response(
    text.replace(placeholderMembers, () => members),
    response,
  );
}
