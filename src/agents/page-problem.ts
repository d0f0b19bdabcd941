import type { OwnContent } from "./own-content.ts";

/** A page that takes longer counts as slow. */
export const slowPageMs = 3000;

/**
 * Why a page with a success status can't be used. `empty`: it has no text. `empty_shell`: it has no content without JavaScript. `soft_404`: it is an
 * error page. `missing`: it is an error page that suggests other pages and asks search engines not to list it, so its author knows that the page is
 * missing. `sign_in`: a form is in place of the page. `challenge`: a test of the browser is in place of it.
 */
export type PageProblem = "empty" | "empty_shell" | "soft_404" | "missing" | "sign_in" | "challenge";

/** The facts about an HTML page from which its problem is found. */
type Content = { own: OwnContent; samples: number; scripts: number; asksForScript: boolean; hasAlternative: boolean };

/** From this many characters of text on, a page has content, or a heading has a text. */
const someText = 200;
const textOfHeading = 40;
/** A page with scripts, less text than this and fewer links than that is filled by its scripts, if nothing shows the contrary. */
const maxPlaceholder = 60;
const minMenuLinks = 3;
/** A page with less text than this for each picture shows its pictures instead of text. Only the first few pictures count. */
const textPerPicture = 80;
const maxPictures = 3;
/** A page with more characters, headings or links than these isn't an error page or a sign-in form. */
const maxThin = { text: 600, headings: 2, links: 8 };

/** Whether a page says no more than an error page or a sign-in form would. */
export const isThin = ({ own, samples }: Content): boolean =>
  samples === 0 &&
  own.textLength < maxThin.text &&
  own.headings <= maxThin.headings &&
  own.links <= maxThin.links &&
  own.frames === 0;

/** Whether a page has almost nothing to read, like a page that sends its readers elsewhere. */
export const isStub = (content: Content): boolean => isThin(content) && content.own.textLength < someText;

/** Whether a page leaves it to its frames to say something. */
export const isFrameset = ({ own, samples }: Content): boolean =>
  own.frames > 0 && samples === 0 && own.textLength < someText;

/** Whether there is so little text for so many pictures that the pictures have to carry the content. */
export const isLeftToPictures = (textLength: number, pictures: number): boolean =>
  textLength < textPerPicture * Math.min(pictures, maxPictures);

/** Whether a page shows pictures, and hardly says in words what they show. */
export const isPictured = (content: Content): boolean => {
  const { textLength, linkTextLength, images, imageTextLength, links } = content.own;
  return links <= images && isThin(content) && isLeftToPictures(textLength + linkTextLength + imageTextLength, images);
};

/** The problem of an HTML page; null if it has none, or if only its words make it an error page. */
export function findProblem(content: Content): PageProblem | null {
  const { own, scripts } = content;
  if (isShell(content)) return own.asksForProof || own.mayAskForProof ? "challenge" : "empty_shell";
  if (isThin(content) && own.asksForProof) return "challenge";
  // A page that only may ask to sign in must have even less text.
  if ((isThin(content) && own.asksToSignIn) || (isStub(content) && own.mayAskToSignIn)) return "sign_in";
  const parts = own.textLength + own.headings + own.links + own.images + own.frames + content.samples;
  return parts === 0 && scripts === 0 ? "empty" : null;
}

/** Whether a page has nothing to read until its scripts have run. */
function isShell({ own, samples, scripts, asksForScript, hasAlternative }: Content): boolean {
  if (scripts === 0 || samples > 0 || own.frames > 0 || own.textLength >= someText) return false;
  // One picture may be the logo that is shown until the content is there.
  const hasSection = own.headings > 0 && (own.textLength >= textOfHeading || own.links > 0 || own.images > 1);
  if (hasSection) return false;
  // A page that says what its scripts are for, and what else there is to read, leaves nobody without content.
  if (hasAlternative && own.textLength >= textOfHeading) return false;
  if (own.hasEmptyMount || asksForScript) return true;
  return own.headings === 0 && own.links < minMenuLinks && own.textLength < maxPlaceholder;
}
