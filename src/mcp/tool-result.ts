/**
 * Results of tools. Serializing a large one takes longer than most tools, so it is done here, once for a value that is returned many times. The
 * SDKs serialize a placeholder, which `fillPlaceholder` replaces.
 */

/** What a tool returned. When it is serialized, its JSON is added as text, for clients that don't read structured content. */
export type ToolResult = { structuredContent: object };

/** Whether the result of a request is that of a tool. */
export const isToolResult = (result: object): result is ToolResult => "structuredContent" in result;

/** The result as an object, for responses that can't have a placeholder: batches and streams. */
export const withText = ({ structuredContent }: ToolResult) => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent) }],
  structuredContent,
});

const membersOf = (result: object): string => JSON.stringify(result).slice(1, -1);

/** Stands for a result in a response, until `fillPlaceholder` replaces it. */
export const placeholder = { content: [] };
const placeholderMembers = membersOf(placeholder);

/** Members of results by value, kept as long as the values. */
const serialized = new WeakMap<object, string>();

/** The members of a result as JSON, without braces, for `fillPlaceholder`. */
export function toResultMembers(result: ToolResult): string {
  const { structuredContent } = result;
  const cached = serialized.get(structuredContent);
  if (cached !== undefined) return cached;
  const members = membersOf(withText(result));
  serialized.set(structuredContent, members);
  return members;
}

/** Replaces the placeholder in a response, which begins with its result. */
export async function fillPlaceholder(response: Response, members: string): Promise<Response> {
  const text = await response.text();
  return new Response(
    text.replace(placeholderMembers, () => members),
    response,
  );
}
