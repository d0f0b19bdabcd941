declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*.md" {
  const text: string;
  export default text;
}

declare module "htmx.org/dist/htmx.esm.min.js" {
  export { default } from "htmx.org";
}

/** The result of an import `with { type: "file" }`. It is a path, which also works inside the executable. */
declare module "*.woff2" {
  const path: string;
  export default path;
}
