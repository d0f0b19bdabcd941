/** The result of an import `with { type: "file" }`: a path, also inside the executable. */
declare module "*.wasm" {
  const path: string;
  export default path;
}
