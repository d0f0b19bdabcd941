import type { ComponentChildren, JSX, VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { version } from "../../../package.json" with { type: "json" };
import { siteDigestOf } from "../../agents/site/site-name.ts";
import { httpUrl } from "../../schema.ts";
import { assetPaths } from "../assets.ts";
import { menuItems } from "../menu-items.ts";
import { type Site, themes } from "../site.ts";
import type { Toast } from "../toasts.ts";
import type { Viewer } from "../viewer.ts";
import { ButtonForm } from "./form-parts.tsx";
import { Palette, SearchLink } from "./palette.tsx";
import { TimeZone } from "./when.tsx";

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%233b5bdb'/%3E%3Cpath d='M4 11.5V8m4 3.5v-7m4 7V6.5' stroke='%23fff' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";

type Crumb = { name: string; path?: string };

type Props = {
  site: Site;
  /** Set on pages of an organization. They show the menu of the organization. */
  viewer?: Viewer;
  /** Whether the signed-in person has no organization. */
  isSignedIn?: boolean;
  /** Path without the base path. It starts with a slash. */
  path: string;
  title: string;
  description?: string;
  /** The organization that shows the page to people without an account. Such a page has no menu and no links to other pages of the service. */
  publisher?: string;
  /** Whether the page is public. Search engines index public pages, and public pages have a Markdown version. */
  isPublic?: boolean;
  markdownPath?: string;
  /** Reload interval for browsers without JavaScript. */
  refreshSeconds?: number;
  crumbs?: Crumb[];
  /** Shown beside the content. In the document it comes after the content, so that screen readers reach the content first. */
  aside?: VNode;
  children: ComponentChildren;
};

/** Hidden field with the organization that a form belongs to. The person may have switched organizations in another tab since then. */
export const orgField = "madeFor";

/** Renders a page fragment. Adds the viewer's organization to each form. */
export const renderFragment = (part: VNode, viewer?: Viewer, timeZone = viewer?.timeZone ?? "UTC"): string => {
  const html = renderToString(<TimeZone.Provider value={timeZone}>{part}</TimeZone.Provider>);
  if (!viewer) return html;
  const field = `<input type="hidden" name="${orgField}" value="${viewer.org}"/>`;
  return html.replaceAll(/<form\b[^>]*\bmethod="post"[^>]*>/g, (form) => form + field);
};

/** Renders a whole document. `timeZone`: by default, the time zone of the viewer. */
export function renderPage(page: JSX.Element, timeZone?: string): string {
  return `<!doctype html>\n${renderFragment(page, page.props.viewer, timeZone)}\n`;
}

/** The frame of every page: head, navigation, breadcrumbs and notices around the content. */
export function Layout(props: Props) {
  const {
    site,
    viewer,
    isSignedIn = false,
    path,
    title,
    description,
    publisher,
    isPublic = false,
    markdownPath,
    refreshSeconds,
    crumbs,
    aside,
    children,
  } = props;
  const { base, baseUrl, theme } = site;
  const publicHeader =
    publisher === undefined ? (
      <SiteBar {...{ site, isSignedIn, path }} />
    ) : (
      <header class="bar publisher">
        <strong {...foreignText}>{publisher}</strong>
      </header>
    );
  return (
    <html lang="en" data-theme={theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content={theme === "system" ? "light dark" : theme} />
        <title>{title === "evald" ? title : `${title} · evald`}</title>
        {description && <meta name="description" content={description} />}
        {isPublic ? <link rel="canonical" href={baseUrl + path} /> : <meta name="robots" content="noindex" />}
        {refreshSeconds && (
          <noscript>
            <meta http-equiv="refresh" content={String(refreshSeconds)} />
          </noscript>
        )}
        <link rel="icon" href={icon} />
        <link rel="stylesheet" href={base + assetPaths.css} />
        <link rel="preload" href={base + assetPaths.font} as="font" type="font/woff2" crossorigin="anonymous" />
        <script src={base + assetPaths.js} defer />
        {markdownPath && <link rel="alternate" type="text/markdown" href={baseUrl + markdownPath} />}
        {isPublic && <link rel="help" type="text/plain" href={`${baseUrl}/llms.txt`} title="Index for agents" />}
      </head>
      <body class={viewer && "app"}>
        <a class="skip" href="#content">
          Skip to content
        </a>
        {viewer ? <Menu {...{ site, viewer, path }} /> : publicHeader}
        <div class={aside ? "frame with-aside" : "frame"}>
          <main id="content">
            <div id="toast">{viewer?.toast && <ToastLine base={base} toast={viewer.toast} />}</div>
            {crumbs && <Crumbs base={base} crumbs={crumbs} markdownPath={markdownPath} />}
            {children}
          </main>
          {aside}
        </div>
        {!viewer && (
          <footer class="foot">
            {publisher === undefined ? (
              <>
                <span>evald {version}</span>
                <a href={`${base}/docs/api`}>REST API</a>
                <a href={`${base}/llms.txt`}>llms.txt</a>
              </>
            ) : (
              <span>Measured with evald {version}</span>
            )}
            <ThemeSwitch {...{ site, path }} />
          </footer>
        )}
        {viewer && <KeyboardShortcuts />}
        {viewer && <Palette base={base} />}
      </body>
    </html>
  );
}

const SiteBar = ({ site: { base }, isSignedIn, path }: { site: Site; isSignedIn: boolean; path: string }) => (
  <header class="bar">
    <a class="mark" href={`${base}/`}>
      <Logo /> evald
    </a>
    <nav aria-label="Site">
      <a href={`${base}/docs`} aria-current={path.startsWith("/docs") && path !== "/docs/api" ? "true" : undefined}>
        Docs
      </a>
      <a href={`${base}/docs/api`} aria-current={path === "/docs/api" ? "page" : undefined}>
        API
      </a>
      <AccountLink {...{ base, isSignedIn, path }} />
    </nav>
  </header>
);

function AccountLink({ base, isSignedIn, path }: { base: string; isSignedIn: boolean; path: string }) {
  // Caches keep the documentation, so it must be the same for everyone who isn't signed in.
  if (path.startsWith("/docs")) return <a href={`${base}/`}>Home</a>;
  const place = isSignedIn ? "/account" : "/sign-in";
  return (
    <a href={base + place} aria-current={path === place ? "page" : undefined}>
      {isSignedIn ? "Account" : "Sign in"}
    </a>
  );
}

/** What the last form changed, with a button to undo it. */
const ToastLine = ({ base, toast: { text, undo } }: { base: string; toast: Toast }) => (
  <div class="toast" role="status">
    {text}
    {undo && (
      <ButtonForm action={base + undo.path} name={undo.name} value={undo.value}>
        Undo
      </ButtonForm>
    )}
  </div>
);

const themeNames = { system: "System", light: "Light", dark: "Dark" };

/** Chooses the color scheme. `path`: the path of this page, to return to it. */
const ThemeSwitch = ({ site: { base, theme }, path }: { site: Site; path: string }) => (
  <form class="theme" method="post" action={`${base}/theme`} aria-label="Color scheme">
    <input type="hidden" name="from" value={path} />
    {themes.map((each) => (
      <button key={each} type="submit" name="theme" value={each} aria-pressed={each === theme}>
        {themeNames[each]}
      </button>
    ))}
  </form>
);

const isAt = (path: string, place: string) =>
  place === "/" ? path === "/" : path === place || path.startsWith(`${place}/`);

/** The menu of an organization: a sidebar, or a top bar on narrow screens. */
const Menu = ({ site, viewer, path }: { site: Site; viewer: Viewer; path: string }) => (
  <header class="menu">
    <a class="mark" href={`${site.base}/`}>
      <Logo /> evald
    </a>
    <Switcher {...{ base: site.base, viewer }} />
    <button type="button" class="fold" popovertarget="menu">
      Menu
    </button>
    <div id="menu" class="folded" popover="auto">
      <nav aria-label="Organization">
        <SearchLink base={site.base} />
        {menuItems.map(([name, place, key]) => (
          <a
            key={place}
            href={site.base + place}
            data-key={`g ${key}`}
            aria-current={isAt(path, place) ? "page" : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
      <nav class="foot-links" aria-label="Site">
        <a href={`${site.base}/docs`} aria-current={isAt(path, "/docs") && path !== "/docs/api" ? "page" : undefined}>
          Docs
        </a>
        <a href={`${site.base}/docs/api`} aria-current={path === "/docs/api" ? "page" : undefined}>
          API
        </a>
      </nav>
      <ThemeSwitch {...{ site, path }} />
      {viewer.person && (
        <nav class="person" aria-label="Account">
          <a
            href={`${site.base}/account`}
            title={viewer.person.email}
            aria-current={isAt(path, "/account") ? "page" : undefined}
          >
            {viewer.person.name}
          </a>
          <ButtonForm action={`${site.base}/sign-out`}>Sign out</ButtonForm>
        </nav>
      )}
    </div>
  </header>
);

/** The current organization. If the person has several organizations, it is a switcher. */
const Switcher = ({ base, viewer }: { base: string; viewer: Viewer }) =>
  viewer.orgs.length < 2 ? (
    <p class="org">{viewer.orgName}</p>
  ) : (
    <details class="org">
      <summary>{viewer.orgName}</summary>
      <form method="post" action={`${base}/account/organization`}>
        {viewer.orgs.map(({ id, name }) => (
          <button type="submit" key={id} name="org" value={id} aria-current={id === viewer.org ? "true" : undefined}>
            {name}
          </button>
        ))}
      </form>
    </details>
  );

const KeyboardShortcuts = () => (
  <dialog id="keys" aria-labelledby="keys-title">
    <h2 id="keys-title">Keyboard shortcuts</h2>
    <dl class="facts">
      <div>
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search this list, or everything</dd>
      </div>
      <div>
        <dt>
          <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Search everything</dd>
      </div>
      {menuItems.map(([name, , key]) => (
        <div key={key}>
          <dt>
            <kbd>g</kbd> <kbd>{key}</kbd>
          </dt>
          <dd>{name}</dd>
        </div>
      ))}
    </dl>
    <form method="dialog">
      <button type="submit">Close</button>
    </form>
  </dialog>
);

const Logo = () => (
  <svg viewBox="0 0 16 16" aria-hidden="true">
    <rect width="16" height="16" rx="4" />
    <path d="M4 11.5V8m4 3.5v-7m4 7V6.5" />
  </svg>
);

type CrumbsProps = { base: string; crumbs: Crumb[]; markdownPath?: string };

const Crumbs = ({ base, crumbs, markdownPath }: CrumbsProps) => (
  <nav class="crumbs" aria-label="Breadcrumbs">
    <ol>
      {crumbs.map(({ name, path }) => (
        <li key={name}>
          {path === undefined ? <span aria-current="page">{name}</span> : <a href={base + path}>{name}</a>}
        </li>
      ))}
    </ol>
    {markdownPath && <a href={base + markdownPath}>View as Markdown</a>}
  </nav>
);

/** Attributes of text that somebody else has written. Its direction follows from its letters, and its language is unknown. */
export const foreignText = { dir: "auto", lang: "" } as const;

/** An address as text. Docs from a folder have no address outside of their runs. */
export function addressText(url: string): string {
  const digest = siteDigestOf(url);
  return digest === null ? url : `Built docs ${digest}${new URL(url).pathname.replace(/^\/$/, "")}`;
}

/** A URL that comes from a target or a caller. It becomes a link only if it is http(s), and the link sends no referrer. */
export function ExternalLink({ url }: { url: string }) {
  const href = siteDigestOf(url) === null ? httpUrl(url)?.href : undefined;
  return href === undefined ? (
    <span class="address">{addressText(url)}</span>
  ) : (
    <a class="address" href={href} rel="noreferrer nofollow">
      {url}
    </a>
  );
}
