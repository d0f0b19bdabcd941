/** The result of an import `with { type: "file" }`: a path, also inside the executable. */
declare module "*.wasm" {
  const path: string;
  export default path;
}

/** The result of an import `with { type: "text" }`. */
declare module "*.cjs" {
  const text: string;
  export default text;
}
