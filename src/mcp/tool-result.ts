/**
 * Results of tools. Serializing a large result takes longer than most tools. So it is done here, and only once for a value that is returned many
 * times. The SDKs serialize a placeholder, which `fillPlaceholder` replaces.
 */

/** The result of a tool. Serializing it also adds its JSON as text, for clients that don't read structured content. */
export type ToolResult = { structuredContent: object };

/** Whether the result of a request is the result of a tool. */
export const isToolResult = (result: object): result is ToolResult => "structuredContent" in result;

/** The result as an object, for batches and streams, whose responses can't contain a placeholder. */
export const withText = ({ structuredContent }: ToolResult) => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent) }],
  structuredContent,
});

const membersOf = (result: object): string => JSON.stringify(result).slice(1, -1);

/** Stands for a result in a response, until `fillPlaceholder` replaces it. */
export const placeholder = { content: [] };
const placeholderMembers = membersOf(placeholder);

/** The members of each result as JSON. They are kept as long as the result itself. */
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

/** Replaces the placeholder in a response with the members. A response begins with its result. */
export async function fillPlaceholder(response: Response, members: string): Promise<Response> {
  const text = await response.text();
  return new Response(
    text.replace(placeholderMembers, () => members),
    response,
  );
}
