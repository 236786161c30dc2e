/**
 * The folder an archive is unpacked into, and the rules it must keep.
 *
 * It refuses the archive as a whole (an exception; the caller removes the folder) on a name or link that leaves the folder,
 * on anything that is no file, folder or link, on a name twice, and past its bounds. Symbolic links are made last, when
 * all files are written: nothing is ever written through a link.
 */
import { link, mkdir, open, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { splitEntryPath, staysInside } from './entry-path.ts'

export interface ArchiveLimits {
  readonly maxEntries: number
  readonly maxTotalBytes: number
}

export const DEFAULT_ARCHIVE_LIMITS: ArchiveLimits = { maxEntries: 200_000, maxTotalBytes: 4 * 1024 ** 3 }

/** What an archive did wrong; `unsafe` when it tried to leave its folder. */
export class ArchiveFault extends Error {
  readonly kind: 'unsafe' | 'broken' | 'large'

  constructor(kind: 'unsafe' | 'broken' | 'large', message: string) {
    super(message)
    this.name = 'ArchiveFault'
    this.kind = kind
  }
}

export class Tree {
  readonly #root: string
  readonly #limits: ArchiveLimits
  readonly #files = new Set<string>()
  readonly #links = new Map<string, string>()
  #entries = 0
  #bytes = 0

  constructor(root: string, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS) {
    this.#root = root
    this.#limits = limits
  }

  async addFolder(name: string): Promise<void> {
    await mkdir(join(this.#root, this.#place(name)), { recursive: true })
  }

  async addFile(name: string, executable: boolean, content: AsyncIterable<Uint8Array>): Promise<void> {
    const place = this.#placeOfNewFile(name)
    const path = join(this.#root, place)
    await mkdir(dirname(path), { recursive: true })
    const file = await open(path, 'wx', executable ? 0o755 : 0o644)
    try {
      await writeFile(file, this.#counted(content))
    } finally {
      await file.close()
    }
  }

  addSymlink(name: string, target: string): void {
    const place = this.#placeOfNewFile(name)
    if (!staysInside(target, place.split('/').length - 1)) throw unsafe(`the link ${name} leads to ${target}`)
    this.#links.set(place, target)
  }

  /** A second name for a file that the archive itself has brought. */
  async addHardLink(name: string, target: string): Promise<void> {
    const from = this.#place(target)
    if (!this.#files.has(from) || this.#links.has(from)) throw unsafe(`the link ${name} leads to ${target}`)
    const path = join(this.#root, this.#placeOfNewFile(name))
    await mkdir(dirname(path), { recursive: true })
    await link(join(this.#root, from), path)
  }

  async finish(): Promise<void> {
    // All parents first: where names differ only in case, a folder must not be reached through a link made just before.
    for (const place of this.#links.keys()) await mkdir(join(this.#root, dirname(place)), { recursive: true })
    for (const [place, target] of this.#links) await symlink(target, join(this.#root, place))
  }

  #place(name: string): string {
    this.#entries += 1
    if (this.#entries > this.#limits.maxEntries) throw new ArchiveFault('large', 'too many entries')
    const parts = splitEntryPath(name)
    if (parts === undefined) throw unsafe(`the entry ${name}`)
    return parts.join('/')
  }

  #placeOfNewFile(name: string): string {
    const place = this.#place(name)
    if (place === '') throw new ArchiveFault('broken', 'an entry without a name')
    if (this.#files.has(place)) throw new ArchiveFault('broken', `the entry ${name} is there twice`)
    this.#files.add(place)
    return place
  }

  async *#counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      this.#bytes += chunk.length
      if (this.#bytes > this.#limits.maxTotalBytes) throw new ArchiveFault('large', 'too many bytes when unpacked')
      yield chunk
    }
  }
}

function unsafe(what: string): ArchiveFault {
  return new ArchiveFault('unsafe', what)
}
