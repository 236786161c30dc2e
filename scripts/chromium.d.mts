export function findChromium(): Promise<
  { readonly executablePath: string; readonly args: string[] } | { readonly missing: string }
>
