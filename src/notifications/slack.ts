import { cut } from "./events.ts";
import type { Message, MessagePart } from "./messages.ts";

/** The limits of Slack: characters of a header, of a section and of a whole message, and the number of blocks. */
const limits = { header: 150, section: 3_000, blocks: 50, message: 13_000 };
/** Maximum characters of a line before escaping. Escaping can make a character five times as long. */
const maxLine = 300;

const escapeText = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const toLine = ({ text, url }: MessagePart["lines"][number]) => {
  const words = escapeText(cut(text.replace(/\s+/g, " "), maxLine));
  if (!url) return words;
  // Decodes first, so that encoded characters aren't encoded twice. `|` would end the address.
  const address = encodeURI(decodeURI(url)).replaceAll("|", "%7C");
  return `• <${address}|${words}>`;
};

type Block =
  | { type: "header"; text: { type: "plain_text"; text: string } }
  | { type: "section"; text: { type: "mrkdwn"; text: string } };

/** A message for an incoming webhook of Slack. It is cut to the limits of Slack. */
export function toSlack({ title, url, parts }: Message): { text: string; blocks: Block[] } {
  const section = (text: string): Block => ({ type: "section", text: { type: "mrkdwn", text } });
  const heading = cut(title.replace(/\s+/g, " "), limits.header);
  const linkSection = section(`<${url}|Open in evald>`);
  const ellipsis = section("…");
  const blocks: Block[] = [{ type: "header", text: { type: "plain_text", text: heading } }];
  // The heading occurs twice in the message. The ellipsis and the link must still fit.
  let remaining = limits.message - 2 * heading.length - linkSection.text.text.length - ellipsis.text.text.length;
  for (const text of parts.flatMap(sectionsOf)) {
    if (blocks.length + 2 >= limits.blocks || text.length > remaining) {
      blocks.push(ellipsis);
      break;
    }
    blocks.push(section(text));
    remaining -= text.length;
  }
  return { text: escapeText(heading), blocks: [...blocks, linkSection] };
}

/** The text of a part as sections. It is split where a section would become too long. */
function sectionsOf({ heading, lines }: MessagePart): string[] {
  const sections: string[] = [];
  let current = heading ? `*${escapeText(heading)}*` : "";
  for (const line of lines.map(toLine)) {
    if (current !== "" && current.length + 1 + line.length > limits.section) {
      sections.push(current);
      current = line;
    } else current = current === "" ? line : `${current}\n${line}`;
  }
  return current === "" ? sections : [...sections, current];
}
