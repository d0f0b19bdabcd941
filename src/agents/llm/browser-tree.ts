import type { SerializedAXNode } from "puppeteer-core/internal/puppeteer-core-browser.js";

/** A page as its accessibility tree: one line per element, and `[e12]` to refer to it. */
export type PageText = { text: string; find(ref: string): SerializedAXNode | null };

const controls = new Set(
  "link button textbox searchbox combobox listbox option checkbox radio switch slider spinbutton tab menuitem menuitemcheckbox menuitemradio treeitem DisclosureTriangle Date DateTime InputTime ColorWell".split(
    " ",
  ),
);
/** Roles that are named by their text content. */
const namedByText = new Set([...controls, "heading", "cell", "gridcell", "columnheader", "rowheader"]);
/** Roles that add nothing to their children. */
const transparent = new Set(
  "none generic paragraph LabelText MenuListPopup rowgroup RootWebArea strong emphasis Section DescriptionListDetail time superscript subscript".split(
    " ",
  ),
);
const unseen = new Set(["InlineTextBox", "ListMarker", "LineBreak"]);
const states = "checked pressed disabled expanded selected required readonly invalid".split(
  " ",
) as (keyof SerializedAXNode)[];
/** Short elements of any type may be clickable. */
const labelChars = 60;
const maxNameChars = 2000;

/** The tree as text. Strings of the page are quoted as JSON. Refs stay the same as long as the element exists. */
export function toPageText(root: SerializedAXNode, address: string): PageText {
  const lines: string[] = [];
  const nodes = new Map<string, SerializedAXNode>();
  const origin = URL.parse(address)?.origin;

  const refOf = (node: SerializedAXNode): string => {
    if (node.backendNodeId === undefined) return "";
    nodes.set(`e${node.backendNodeId}`, node);
    return ` [e${node.backendNodeId}]`;
  };
  const write = (depth: number, text: string) => lines.push(" ".repeat(Math.min(depth, 12)) + text);

  function put(node: SerializedAXNode, depth: number, isNamed: boolean): void {
    const { role, children = [] } = node;
    if (unseen.has(role)) return;
    const name = (node.name ?? "").trim().slice(0, maxNameChars);
    const isQuiet = transparent.has(role) || (role === "image" && name === "");
    if (isQuiet) {
      putAll(children, depth, isNamed);
      return;
    }
    const shown = name && role !== "row" ? ` ${JSON.stringify(name)}` : "";
    const value = node.value === undefined || node.value === "" ? "" : ` value ${JSON.stringify(node.value)}`;
    const level = role !== "heading" || node.level === undefined ? "" : ` level ${node.level}`;
    const said = states.flatMap((state) =>
      node[state] ? [node[state] === true ? state : `${state} ${node[state]}`] : [],
    );
    const address = role === "link" && typeof node.url === "string" ? ` → ${shortUrl(node.url)}` : "";
    write(
      depth,
      [
        role,
        shown,
        controls.has(role) ? refOf(node) : "",
        level,
        value,
        said.map((each) => ` ${each}`).join(""),
        address,
      ].join(""),
    );
    putAll(children, depth + 1, isNamed || (name !== "" && namedByText.has(role)));
  }

  /** Consecutive texts are merged. */
  function putAll(children: SerializedAXNode[], depth: number, isNamed: boolean): void {
    let run: SerializedAXNode[] = [];
    const flush = () => {
      const text = run
        .map(({ name }) => name ?? "")
        .join("")
        .trim();
      const [only] = run;
      if (text !== "" && !isNamed) {
        const ref = run.length === 1 && only && text.length <= labelChars ? refOf(only) : "";
        write(depth, `text ${JSON.stringify(text)}${ref}`);
      }
      run = [];
    };
    for (const child of children) {
      if (child.role === "StaticText") run.push(child);
      else {
        flush();
        put(child, depth, isNamed);
      }
    }
    flush();
  }

  const shortUrl = (url: string) =>
    (origin && url.startsWith(`${origin}/`) ? url.slice(origin.length) : url).slice(0, 200);

  put(root, 0, false);
  return { text: lines.join("\n"), find: (ref) => nodes.get(ref) ?? null };
}
