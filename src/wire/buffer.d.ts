/** Methods of the global Buffer that its type declarations leave out; they skip the encoding look-up of `toString`. */
interface Buffer {
  latin1Slice(start?: number, end?: number): string
  utf8Slice(start?: number, end?: number): string
}
