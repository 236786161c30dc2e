/** Marks text that is JSON already, so that whoever passes it on neither parses nor writes it again. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}
