import { and, eq, isNull, ne } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { prompts } from "../db/tables/prompts.ts";
import { badRequest } from "../errors.ts";
import { titleFromTask } from "../grading/text.ts";
import { titleText } from "./lists.ts";

const promptsByTitle = statement((db) =>
  db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, bound("org")), eq(prompts.title, bound("title")), ne(prompts.status, "archived")))
    .limit(literal(10)),
);

const untitledPrompts = statement((db) =>
  db
    .select({ id: prompts.id, text: titleText })
    .from(prompts)
    .where(and(eq(prompts.orgId, bound("org")), isNull(prompts.title), ne(prompts.status, "archived")))
    .limit(literal(1000)),
);

/**
 * The prompt ID for a person's input: an ID, the URL of a prompt, or a title. Any other text is returned as it is. Throws bad_request for a title
 * that several prompts have.
 */
export function readPromptId(ctx: Context, org: OrgId, text: string): string {
  const [, idInUrl] = /^https?:\/\/.*\/prompts\/([0-9a-f-]{36})(?:[/?#].*)?$/i.exec(text) ?? [];
  if (idInUrl !== undefined) return idInUrl;
  if (/^[0-9a-f-]{36}$/i.test(text)) return text;
  let matches: { id: string }[] = promptsByTitle(ctx.db).all({ org, title: text });
  if (matches.length === 0)
    matches = untitledPrompts(ctx.db)
      .all({ org })
      .filter((prompt) => titleFromTask(prompt.text) === text);
  if (matches.length > 1)
    throw badRequest(
      `Several prompts have the title ${JSON.stringify(text)}. Use an ID: ${matches.map(({ id }) => id).join(", ")}.`,
    );
  return matches[0]?.id ?? text;
}
