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
