/** A document. Its language is the one that its head declares. */
export function documentOf(head: string, body: string, attributes = ""): string {
  const language = /http-equiv="content-language" content="(\w+)"/.exec(head)?.[1] ?? "en";
  return `<!DOCTYPE html>\n<html lang="${language}"${attributes}>\n<head>\n${head}\n</head>\n${rich(body)}\n</html>\n`;
}

const verbatim = /(<pre[\s\S]*?<\/pre>|<code[\s\S]*?<\/code>|<script[\s\S]*?<\/script>)/i;

/** Writes inline code and strong text outside of samples, and numbered lists. */
export const rich = (body: string): string =>
  body
    .split(verbatim)
    .map((part, at) =>
      at % 2
        ? part
        : part.replace(/`([^`\n]+)`/g, "<code>$1</code>").replace(/\*\*([^*\n]+)\*\*/g, "<strong>$1</strong>"),
    )
    .join("")
    .replace(/<ul><li>1\. [\s\S]*?<\/ul>/g, (list) =>
      list
        .replace("<ul>", "<ol>")
        .replace("</ul>", "</ol>")
        .replace(/<li>\d+\. /g, "<li>"),
    );

export const list = (navigation: string): string => `<ul>${navigation}</ul>`;

export const lines = (code: string, write: (line: string, number: number) => string, between = "\n"): string =>
  code
    .split("\n")
    .map((line, at) => write(line, at + 1))
    .join(between);

const token =
  /("(?:[^"\\\n]|\\.)*")|\b(async|await|auto|class|const|def|fn|for|from|func|if|import|let|new|package|public|return|static|try|type|use|using|var|void)\b|\b(\d+)\b/g;

/** Marks strings, keywords and numbers. */
export const highlight = (
  code: string,
  mark: (kind: "string" | "keyword" | "number", text: string) => string,
): string =>
  code.replace(token, (all: string, string?: string, keyword?: string, _number?: string, at?: number) => {
    const isEntity = code[(at ?? 0) - 1] === "#" && code[(at ?? 0) - 2] === "&";
    if (isEntity) return all;
    return mark(string ? "string" : keyword ? "keyword" : "number", all);
  });

/** Marks them by classes. */
export const byClass = (code: string, string: string, keyword: string, number: string): string =>
  highlight(code, (kind, text) => `<span class="${{ string, keyword, number }[kind]}">${text}</span>`);
