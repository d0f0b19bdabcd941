import { ownMember } from "../schema.ts";

type Element = HTMLRewriterTypes.Element;

/** What a page contains besides the menus, banners and footers that surround it. */
export type OwnContent = {
  /** Characters of text outside links, and in them. */
  textLength: number;
  linkTextLength: number;
  links: number;
  headings: number;
  /** Pictures that show something, and the characters of the texts that describe them. */
  images: number;
  imageTextLength: number;
  frames: number;
  /** Number of tools that readers use instead of reading, such as areas to write or draw in. */
  tools: number;
  /** Number of tabs that show a part of the page, and number of parts that can be shown. */
  tabs: number;
  tabPanels: number;
  /** Number of parts that are named as the content of a tab, but are empty. */
  emptyPanels: number;
  /** Whether it has an element without content, which scripts may fill. */
  hasEmptyMount: boolean;
  /** Whether it has a form or a link that proves who the reader is. */
  asksToSignIn: boolean;
  /** Whether it asks for an e-mail address, or all of its links lead to a place that may ask who the reader is. */
  mayAskToSignIn: boolean;
  /** Whether it tests that the reader is a person with a browser. */
  asksForProof: boolean;
  /** Whether a script in it loads such a test, in addition to its content or instead of it. */
  mayAskForProof: boolean;
};

type Form = { isPosted: boolean; isForSignIn: boolean; fields: string[] };

/**
 * The kind of an element, by what it says about the text in it. `hidden`: the text isn't shown. `chrome`: it is in a menu, banner, footer or control.
 * `sections`: it is in a part of the page. `lines`: it is in a sentence, list or table.
 */
type OpenKind = "hidden" | "chrome" | "sections" | "links" | "lines";

type State = {
  own: OwnContent;
  /** Characters of all text so far, to tell which elements are empty. */
  charCount: number;
  /** Number of open elements, by what they say about the text in them. */
  open: Record<OpenKind, number>;
  form: Form | null;
  /** URLs of the pictures so far. A picture that is repeated is an icon. */
  sources: Set<string>;
  /** The target of the last link. */
  href: string;
  /** Number of links that may lead to a sign-in page, and of links to the start of the site. */
  signInLinks: number;
  homeLinks: number;
  /** Links in menus, banners and footers. */
  menuLinks: number;
};

/** Reads the content of an HTML page. */
export function readOwnContent(html: string): OwnContent {
  const own: OwnContent = {
    textLength: 0,
    linkTextLength: 0,
    links: 0,
    headings: 0,
    images: 0,
    imageTextLength: 0,
    frames: 0,
    tools: 0,
    tabs: 0,
    tabPanels: 0,
    emptyPanels: 0,
    hasEmptyMount: false,
    asksToSignIn: false,
    mayAskToSignIn: false,
    asksForProof: false,
    mayAskForProof: false,
  };
  const open = { hidden: 0, chrome: 0, sections: 0, links: 0, lines: 0 };
  const state: State = {
    own,
    charCount: 0,
    open,
    form: null,
    sources: new Set(),
    href: "",
    signInLinks: 0,
    homeLinks: 0,
    menuLinks: 0,
  };
  new HTMLRewriter()
    .on("*", { element: (element) => enterElement(state, element) })
    .on("script", {
      text({ text }) {
        own.mayAskForProof ||= challengePath.test(text);
      },
    })
    .onDocument({
      text({ text }) {
        if (open.hidden > 0) return;
        const { length } = text.replace(/\s+/g, " ").trim();
        state.charCount += length;
        if (open.chrome > 0) return;
        if (open.links === 0) own.textLength += length;
        else own.linkTextLength += length;
      },
    })
    .transform(html);
  const otherLinks = own.links - state.signInLinks - state.homeLinks;
  // A page without a menu may have as many other links beside its text.
  const maxOtherLinks = state.menuLinks > 0 ? 0 : state.signInLinks;
  own.mayAskToSignIn ||= state.signInLinks > 0 && otherLinks <= maxOtherLinks;
  return own;
}

/** There is one handler for each element, because only the last function that waits for the element's end is called. */
function enterElement(state: State, element: Element): void {
  const { tagName } = element;
  const isOwn = state.open.chrome === 0 && state.open.hidden === 0;
  ownMember(readElement, tagName)?.(state, element, isOwn);
  state.own.asksForProof ||= element.hasAttribute("data-sitekey");
  const role = element.getAttribute("role");
  // A tab with the URL of a page leads to that page.
  if (role === "tab" && /^(#|$)/.test(element.getAttribute("href") ?? "")) state.own.tabs++;
  if (element.selfClosing || !element.canHaveContent) return;
  const kind = kindOf(element, state.open.sections > 0);
  const { charCount } = state;
  const { images, emptyPanels } = state.own;
  const isMount = role === "tabpanel" || (tagName === "div" && element.hasAttribute("id"));
  const isPanel = isOwn && role !== "tabpanel" && isPanelByName(element);
  if (kind) state.open[kind]++;
  else if (tagName !== "form" && !isPanel && !isMount) return;
  element.onEndTag(() => {
    const hasText = state.charCount !== charCount;
    if (role === "tabpanel" && hasText) state.own.tabPanels++;
    // A panel around an empty panel doesn't count as another empty panel.
    const hasContent = hasText || state.own.images !== images || state.own.emptyPanels !== emptyPanels;
    if (isPanel && !hasContent) state.own.emptyPanels++;
    if (kind) state.open[kind]--;
    else if (tagName === "form") endForm(state);
    else if (isMount) state.own.hasEmptyMount ||= !hasText;
  });
}

/** Names that builders give the content of a tab: classes such as `tab-pane` and `sd-tab-content`, or elements such as `<code-tab>`. */
const panelClass = /(?:^|[\s_-])tab(?:s|bed)?[_-]?(?:content|panel|pane|body|block)(?![\w-])/i;
const tabElement = /^(?:[a-z]+-)+tab$|^tab-(?:item|panel|pane)$/;

/** Whether the name of an element makes it the content of a tab, although it has no role that says so. */
const isPanelByName = (element: Element): boolean =>
  panelClass.test(element.getAttribute("class") ?? "") || tabElement.test(element.tagName);

const namesByKind: [OpenKind, RegExp][] = [
  ["hidden", /^(script|style|noscript|template|svg|head|title)$/],
  ["chrome", /^(nav|button|select|label|textarea|dialog)$/],
  ["sections", /^(main|article|section)$/],
  ["links", /^a$/],
  ["lines", /^(p|li|td|th|dt|dd|h[1-6])$/],
];
const chromeRole = /^(navigation|banner|contentinfo|search|dialog)$/;

/** The kind of an element. A header or footer in a part of the page belongs to that part. */
function kindOf(element: Element, isInSection: boolean): OpenKind | undefined {
  const { tagName } = element;
  const role = element.getAttribute("role") ?? "";
  if (chromeRole.test(role) || (!isInSection && /^(header|footer|aside)$/.test(tagName))) return "chrome";
  return role === "main" ? "sections" : namesByKind.find(([, names]) => names.test(tagName))?.[0];
}

/** Paths and queries of URLs that lead to a sign-in. */
const signInPath = /\/(oauth2?|oidc|openid|saml2?|sso|auth|authorize|login|log-in|signin|sign-in)(\/|$)/i;
const signInQuery = /[?&](client_id|redirect_uri|response_type|samlrequest)=/i;
const mayLeadToSignIn = (url: string): boolean => signInPath.test(url.replace(/[?#].*$/s, ""));
const leadsToSignIn = (url: string): boolean => signInQuery.test(url) || mayLeadToSignIn(url);

const countHeading = ({ own }: State, _: Element, isOwn: boolean): void => {
  if (isOwn) own.headings++;
};
/** A tiny picture is an icon. A tiny picture in a link to a page is the label of the link. */
const maxIconSize = 32;
const imageFile = /\.(png|jpe?g|gif|svg|webp|avif)([?#]|$)/i;
function countImage({ own, open, href, sources }: State, element: Element, isOwn: boolean): void {
  const sizes = ["width", "height"].map((name) => Number.parseInt(element.getAttribute(name) ?? "", 10));
  if (!isOwn || sizes.some((size) => size <= maxIconSize) || (open.links > 0 && !imageFile.test(href))) return;
  const source = element.getAttribute("src");
  if (source !== null && sources.has(source)) return;
  if (source !== null) sources.add(source);
  own.images++;
  own.imageTextLength += element.getAttribute("alt")?.trim().length ?? 0;
}
function countTool({ own }: State): void {
  own.tools++;
}
function countFrame({ own }: State, element: Element): void {
  const source = element.getAttribute("src");
  if (isChallenge(source)) own.asksForProof = true;
  else if (source) own.frames++;
}

/** What an element says about the content of a page, by its name. `isOwn`: it is outside menus, banners and footers. */
const readElement: Record<string, (state: State, element: Element, isOwn: boolean) => void> = {
  a(state, element, isOwn) {
    const { own, open } = state;
    const href = element.getAttribute("href");
    state.href = href ?? "";
    if (!isOwn) state.menuLinks++;
    if (href === null || !isOwn) return;
    own.links++;
    if (/^(\/|#.*)?$/.test(href)) state.homeLinks++;
    // A link in a sentence, a list or a table leads to a page about signing in.
    if (open.lines > 0) return;
    own.asksToSignIn ||= signInQuery.test(href);
    if (mayLeadToSignIn(href)) state.signInLinks++;
  },
  ...Object.fromEntries(["h1", "h2", "h3", "h4", "h5", "h6"].map((name) => [name, countHeading])),
  ...Object.fromEntries(["img", "video", "object", "embed"].map((name) => [name, countImage])),
  textarea: countTool,
  canvas: countTool,
  frame: countFrame,
  iframe: countFrame,
  form(state, element, isOwn) {
    if (!isOwn) return;
    const isPosted = element.getAttribute("method")?.toLowerCase() === "post";
    const isForSignIn = isPosted && leadsToSignIn(element.getAttribute("action") ?? "");
    state.form = { isPosted, isForSignIn, fields: [] };
  },
  input({ own, form }, element) {
    const type = element.getAttribute("type")?.toLowerCase() ?? "text";
    if (type === "password") own.asksToSignIn = true;
    if (!/^(hidden|submit|button|image)$/.test(type)) form?.fields.push(type);
  },
  script({ own }, element) {
    const source = element.getAttribute("src");
    own.asksForProof ||= isChallenge(source) && !widgetScript.test(source ?? "");
  },
  meta({ own }, element) {
    // Without a target, the page loads itself again until it lets the reader through.
    if (element.getAttribute("http-equiv")?.toLowerCase() === "refresh")
      own.asksForProof ||= /^\s*\d+\s*$/.test(element.getAttribute("content") ?? "");
  },
};

/** The path of a test in a script. */
const challengePath = /["'`]\/[^"'`\s]*(?:challenge|captcha)[^"'`\s]*["'`]/i;
/** A script that pages load even if they have no element in which it could test the reader. */
const widgetScript = /\/(api|enterprise)\.js([?#]|$)|\/jsd\//i;
const isChallenge = (source: string | null): boolean => /challenge|captcha/i.test(source ?? "");

/** Notes, at the end of a form, whether it only asks who the reader is. */
function endForm(state: State): void {
  const { own, form } = state;
  state.form = null;
  if (!form) return;
  own.asksToSignIn ||= form.isForSignIn;
  own.mayAskToSignIn ||= form.isPosted && form.fields.length === 1 && form.fields[0] === "email";
}
