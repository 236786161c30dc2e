/** Images that go with a message: what can be drawn here can be sent, as far as the bus takes messages of that size (contract 15.11). */
import { bytes } from '../text.ts'

export interface Picture {
  readonly type: 'image'
  readonly mimeType: string
  /** Base64. */
  readonly data: string
}

export const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const MAX_PICTURES = 8
/** What a message needs beside its images. */
const ROOM_CHARS = 64 * 1024

/** Fails with a sentence for whoever has chosen them. */
export async function addPictures(
  before: readonly Picture[],
  files: readonly File[],
  maxMessageBytes: number,
): Promise<readonly Picture[]> {
  const added = await Promise.all(files.map(read))
  const all = [...before, ...added]
  if (all.length > MAX_PICTURES) throw new Error(`A message has at most ${MAX_PICTURES} images.`)
  const chars = all.reduce((sum, { data }) => sum + data.length, 0)
  if (chars > maxMessageBytes - ROOM_CHARS)
    throw new Error(
      `The images are too large: the bus takes messages of up to ${bytes(maxMessageBytes)} (limits.max_input_buffer).`,
    )
  return all
}

async function read(file: File): Promise<Picture> {
  if (!PICTURE_TYPES.includes(file.type)) throw new Error('Only PNG, JPEG, GIF and WebP images can be sent.')
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(new Error('The file cannot be read.'))
    reader.readAsDataURL(file)
  })
  return { type: 'image', mimeType: file.type, data: url.slice(url.indexOf(',') + 1) }
}

/** Images of what was pasted or dropped. */
export function filesIn(transfer: DataTransfer | null): File[] {
  return [...(transfer?.files ?? [])].filter(({ type }) => type.startsWith('image/'))
}
