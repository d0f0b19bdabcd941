/** What an import `with { type: "file" }` gives: a path, also inside the executable. */
declare module "*.wasm" {
  const path: string;
  export default path;
}
