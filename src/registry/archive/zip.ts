/**
 * Reads a zip file, by its central directory, into a tree.
 *
 * Stored and deflated entries only; encrypted ones and ZIP64 are refused. Every entry must be exactly as long as it says
 * and match its CRC. The tree judges the names.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { crc32, createInflateRaw } from 'node:zlib'
import { ArchiveFault, type Tree } from './tree.ts'

const END_BYTES = 22
const LONGEST_COMMENT = 0xffff
const LARGEST_DIRECTORY = 64 * 1024 * 1024
const UNIX = 3

interface Entry {
  readonly name: string
  readonly method: number
  readonly crc: number
  readonly packedBytes: number
  readonly bytes: number
  readonly mode: number
  readonly offset: number
}

export async function unzip(path: string, tree: Tree): Promise<void> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    for (const entry of parseDirectory(await readDirectory(file, size))) await place(file, entry, tree)
  } finally {
    await file.close()
  }
}

async function readDirectory(file: FileHandle, size: number): Promise<Buffer> {
  const tail = await readAt(
    file,
    Math.max(0, size - END_BYTES - LONGEST_COMMENT),
    Math.min(size, END_BYTES + LONGEST_COMMENT),
  )
  const at = tail.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  if (at === -1 || at + END_BYTES > tail.length) throw broken('it has no directory')
  const bytes = tail.readUInt32LE(at + 12)
  const offset = tail.readUInt32LE(at + 16)
  if (bytes === 0xffffffff || offset === 0xffffffff) throw broken('ZIP64 is not supported')
  if (bytes > LARGEST_DIRECTORY) throw new ArchiveFault('large', 'its directory is too large')
  return readAt(file, offset, bytes)
}

function* parseDirectory(directory: Buffer): Generator<Entry> {
  for (let at = 0; at < directory.length; ) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== 0x02014b50)
      throw broken('its directory is malformed')
    const nameBytes = directory.readUInt16LE(at + 28)
    const end = at + 46 + nameBytes
    if ((directory.readUInt16LE(at + 8) & 1) !== 0) throw broken('it is encrypted')
    yield {
      name: decodeName(directory.subarray(at + 46, end)),
      method: directory.readUInt16LE(at + 10),
      crc: directory.readUInt32LE(at + 16),
      packedBytes: directory.readUInt32LE(at + 20),
      bytes: directory.readUInt32LE(at + 24),
      mode: directory[at + 5] === UNIX ? directory.readUInt16LE(at + 40) : 0,
      offset: directory.readUInt32LE(at + 42),
    }
    at = end + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  }
}

function decodeName(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw broken('a name is not UTF-8')
  }
}

const FILE_TYPE = 0o170000
const TYPES = { none: 0, file: 0o100000, folder: 0o040000, link: 0o120000 } as const

async function place(file: FileHandle, entry: Entry, tree: Tree): Promise<void> {
  const type = entry.mode & FILE_TYPE
  if (entry.name.endsWith('/') || type === TYPES.folder) return tree.addFolder(entry.name)
  if (type === TYPES.link) return tree.addSymlink(entry.name, await readLink(file, entry))
  if (type !== TYPES.none && type !== TYPES.file) {
    throw new ArchiveFault('unsafe', `the entry ${entry.name} is no file, folder or link`)
  }
  await tree.addFile(entry.name, (entry.mode & 0o111) !== 0, content(file, entry))
}

async function readLink(file: FileHandle, entry: Entry): Promise<string> {
  if (entry.bytes > 4_096) throw broken('the target of a link is too long')
  const parts: Uint8Array[] = []
  for await (const chunk of content(file, entry)) parts.push(chunk)
  return Buffer.concat(parts).toString('utf8')
}

/** The unpacked bytes of an entry; throws at the end when they are not what the directory promised. */
async function* content(file: FileHandle, entry: Entry): AsyncGenerator<Uint8Array> {
  const header = await readAt(file, entry.offset, 30)
  if (header.readUInt32LE(0) !== 0x04034b50) throw broken('an entry is not where the directory says')
  const start = entry.offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28)
  let bytes = 0
  let crc = 0
  for await (const chunk of unpacked(file, start, entry)) {
    bytes += chunk.length
    if (bytes > entry.bytes) throw broken('an entry is longer than it says')
    crc = crc32(chunk, crc)
    yield chunk
  }
  if (bytes !== entry.bytes || crc !== entry.crc) throw broken('an entry does not match its checksum')
}

function unpacked(file: FileHandle, start: number, entry: Entry): AsyncIterable<Uint8Array> {
  const packed = readRange(file, start, entry.packedBytes)
  if (entry.method === 0) return packed
  if (entry.method !== 8) throw broken(`the packing method ${entry.method} is not supported`)
  return inflate(packed)
}

async function* inflate(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    // The iterator reports what goes wrong; the callback only keeps `pipeline` from throwing it a second time.
    yield* pipeline(Readable.from(packed), createInflateRaw(), () => {})
  } catch (error) {
    if (error instanceof ArchiveFault) throw error
    throw broken('an entry cannot be unpacked')
  }
}

const PIECE = 64 * 1024

async function* readRange(file: FileHandle, start: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let done = 0; done < bytes; done += PIECE) yield await readAt(file, start + done, Math.min(PIECE, bytes - done))
}

async function readAt(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, position)
  if (bytesRead < bytes) throw broken('it ends too early')
  return buffer
}

function broken(message: string): ArchiveFault {
  return new ArchiveFault('broken', message)
}
