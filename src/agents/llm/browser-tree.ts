import type { SerializedAXNode } from "puppeteer-core/internal/puppeteer-core-browser.js";

/** A page as its accessibility tree: one line per element, and `[e12]` to refer to it. */
export type PageText = { text: string; find(ref: string): SerializedAXNode | null };

const controlRoles = new Set(
  "link button textbox searchbox combobox listbox option checkbox radio switch slider spinbutton tab menuitem menuitemcheckbox menuitemradio treeitem DisclosureTriangle Date DateTime InputTime ColorWell".split(
    " ",
  ),
);
/** Roles that are named by their text content. */
const rolesNamedByText = new Set([...controlRoles, "heading", "cell", "gridcell", "columnheader", "rowheader"]);
/** Roles that add nothing to their children. */
const transparentRoles = new Set(
  "none generic paragraph LabelText MenuListPopup rowgroup RootWebArea strong emphasis Section DescriptionListDetail time superscript subscript".split(
    " ",
  ),
);
const ignoredRoles = new Set(["InlineTextBox", "ListMarker", "LineBreak"]);
const states = "checked pressed disabled expanded selected required readonly invalid".split(
  " ",
) as (keyof SerializedAXNode)[];
/** Short elements of any type may be clickable. */
const labelChars = 60;
const maxNameChars = 2000;
const maxIndentation = 12;

type State = {
  origin: string | undefined;
  lines: string[];
  /** The elements that have a reference. */
  nodes: Map<string, SerializedAXNode>;
};

/** The tree as text. Strings of the page are quoted as JSON. Refs stay the same as long as the element exists. */
export function toPageText(root: SerializedAXNode, pageUrl: string): PageText {
  const state: State = { origin: URL.parse(pageUrl)?.origin, lines: [], nodes: new Map() };
  addNode(state, root, 0, false);
  return { text: state.lines.join("\n"), find: (ref) => state.nodes.get(ref) ?? null };
}

/** `isNamed`: the text of the node is already the name of an element around it. */
function addNode(state: State, node: SerializedAXNode, depth: number, isNamed: boolean): void {
  const { role, children = [] } = node;
  if (ignoredRoles.has(role)) return;
  const name = (node.name ?? "").trim().slice(0, maxNameChars);
  if (transparentRoles.has(role) || (role === "image" && name === "")) {
    addChildren(state, children, depth, isNamed);
    return;
  }
  const parts = [
    role,
    name && role !== "row" ? ` ${JSON.stringify(name)}` : "",
    controlRoles.has(role) ? addRef(state, node) : "",
    role !== "heading" || node.level === undefined ? "" : ` level ${node.level}`,
    node.value === undefined || node.value === "" ? "" : ` value ${JSON.stringify(node.value)}`,
    ...states.map((stateName) => stateText(stateName, node[stateName])),
    role === "link" && typeof node.url === "string" ? ` → ${shortUrl(node.url, state.origin)}` : "",
  ];
  addLine(state, depth, parts.join(""));
  addChildren(state, children, depth + 1, isNamed || (name !== "" && rolesNamedByText.has(role)));
}

function stateText(name: string, value: unknown): string {
  if (!value) return "";
  return value === true ? ` ${name}` : ` ${name} ${value}`;
}

/** Consecutive texts are merged. */
function addChildren(state: State, children: SerializedAXNode[], depth: number, isNamed: boolean): void {
  let texts: SerializedAXNode[] = [];
  for (const child of children) {
    if (child.role === "StaticText") {
      texts.push(child);
      continue;
    }
    if (!isNamed) addText(state, texts, depth);
    texts = [];
    addNode(state, child, depth, isNamed);
  }
  if (!isNamed) addText(state, texts, depth);
}

function addText(state: State, texts: SerializedAXNode[], depth: number): void {
  const text = texts
    .map(({ name }) => name ?? "")
    .join("")
    .trim();
  if (text === "") return;
  const [onlyNode] = texts;
  const ref = texts.length === 1 && onlyNode && text.length <= labelChars ? addRef(state, onlyNode) : "";
  addLine(state, depth, `text ${JSON.stringify(text)}${ref}`);
}

function addLine({ lines }: State, depth: number, text: string): void {
  lines.push(" ".repeat(Math.min(depth, maxIndentation)) + text);
}

function addRef({ nodes }: State, node: SerializedAXNode): string {
  if (node.backendNodeId === undefined) return "";
  nodes.set(`e${node.backendNodeId}`, node);
  return ` [e${node.backendNodeId}]`;
}

const shortUrl = (url: string, origin: string | undefined): string =>
  (origin && url.startsWith(`${origin}/`) ? url.slice(origin.length) : url).slice(0, 200);
