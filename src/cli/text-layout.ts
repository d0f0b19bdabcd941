// Lays out text in terminal columns. A wide character such as 文 or 🚀 takes two columns, and a combining mark takes none.

/** The columns that a text takes in a terminal. */
export const widthOf = (text: string): number => Bun.stringWidth(text);

/** Shortens a text without line breaks to a number of columns. */
export function cutText(text: string, columns: number): string {
  const cut = Bun.sliceAnsi(text, 0, columns, { ellipsis: "…" });
  // If the cut falls within a wide character, Bun keeps the whole character.
  return widthOf(cut) <= columns ? cut : Bun.sliceAnsi(text, 0, columns - 1, { ellipsis: "…" });
}

const padText = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - widthOf(text)));

/**
 * `first`: the prefix of the first line. `indent`: the prefix of the other lines, by default the same. `word`: text that stays on one line. `mark`:
 * added to a line that continues.
 */
type Wrapping = { indent?: string; first?: string; word?: RegExp; mark?: string };

/** The words of a text in lines of at most `columns`. Longer words are not split, so that a URL can be copied. */
export function wrapText(
  text: string,
  columns: number,
  { first = "", indent = first, word: wordPattern = /\S+/g, mark = "" }: Wrapping = {},
): string[] {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const [word] of text.matchAll(wordPattern)) {
    if (!isEmpty && widthOf(`${line} ${word}${mark}`) > columns) {
      lines.push(line + mark);
      line = indent;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}

const gap = "  ";
/** The minimum width of a cell that is cut, so that words such as a status stay whole. */
const minColumn = 14;

/**
 * Rows as aligned columns. The first row is the header. If the rows don't fit into `maxWidth`, the widest cells are cut at their end, and then
 * columns are dropped from the right. If at most half of the columns are left, each row becomes a list of its fields instead. A first column of IDs
 * is never cut.
 */
export function formatTable(rows: string[][], maxWidth: number): string {
  const fullWidths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? "")))) ?? [];
  const hasIds = rows.slice(1).every(([id = ""]) => !id.includes(" "));
  const widths = fitWidths(fullWidths, maxWidth, hasIds ? 1 : 0);
  if (widths.length <= fullWidths.length / 2) return formatRecords(rows, maxWidth);
  return rows
    .map((row) =>
      widths
        .map((width, column) => padText(cutText(row[column] ?? "", width), width))
        .join(gap)
        .trimEnd(),
    )
    .join("\n");
}

/** Widths of columns that fit into a line. Columns before `firstCut` are not cut. */
function fitWidths(fullWidths: number[], maxWidth: number, firstCut: number): number[] {
  const widths = [...fullWidths];
  const total = () => widths.reduce((sum, width) => sum + width + gap.length, -gap.length);
  while (total() > maxWidth && widths.length > 1) {
    const widest = Math.max(...widths.slice(firstCut));
    if (widest > minColumn) widths[widths.indexOf(widest, firstCut)] = widest - 1;
    else widths.pop();
  }
  // A dropped column may have freed space for the columns that were cut.
  for (const [column, width] of widths.entries()) {
    const free = Math.max(0, maxWidth - total());
    if (column >= firstCut) widths[column] = Math.min(fullWidths[column] ?? 0, width + free);
  }
  return widths;
}

/** Each row as a list: its first cell, followed by a line for each other cell with its header. */
function formatRecords([heads = [], ...rows]: string[][], maxWidth: number): string {
  const labels = heads.slice(1);
  const labelWidth = Math.max(...labels.map(widthOf));
  return rows
    .map(([name = "", ...cells]) =>
      [
        name.includes(" ") ? cutText(name, maxWidth) : name,
        ...labels.flatMap((label, i) =>
          cells[i] ? [cutText(`${gap}${padText(label, labelWidth)}${gap}${cells[i]}`, maxWidth)] : [],
        ),
      ].join("\n"),
    )
    .join("\n");
}
