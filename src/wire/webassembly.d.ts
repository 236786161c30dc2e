/** The little of WebAssembly that is used here; the type declarations of Node leave it out. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
  class Instance {
    constructor(module: Module)
    readonly exports: Record<string, unknown>
  }
  function validate(bytes: Uint8Array): boolean
}
