/**
 * Reads a tar stream (ustar, GNU long names, pax names and sizes) into a tree.
 *
 * Devices, pipes and sparse files are refused: no agent needs them. The tree judges the names.
 */
import { ByteReader } from './byte-reader.ts'
import { ArchiveFault, type Tree } from './tree.ts'

const BLOCK = 512
const LONGEST_META = 1024 * 1024

interface Header {
  readonly name: string
  readonly executable: boolean
  readonly size: number
  readonly type: string
  readonly linkName: string
}

/** What a meta entry says of the entry that follows it. */
interface Said {
  name?: string
  linkName?: string
  size?: number
}

export async function untar(chunks: AsyncIterable<Uint8Array>, tree: Tree): Promise<void> {
  const reader = new ByteReader(chunks)
  try {
    let said: Said = {}
    for (let header = await readHeader(reader); header !== undefined; header = await readHeader(reader)) {
      const meta = META[header.type]
      if (meta !== undefined) said = { ...said, ...meta(await readMeta(reader, header)) }
      else {
        await place(reader, tree, { ...header, ...said })
        said = {}
      }
    }
  } finally {
    await reader.close()
  }
}

async function readHeader(reader: ByteReader): Promise<Header | undefined> {
  const block = await reader.read(BLOCK)
  // The archive ends with blocks of zeros; some writers leave them out.
  if (block === undefined || block.every((byte) => byte === 0)) return undefined
  if (parseNumber(block, 148, 8) !== checksum(block)) throw new ArchiveFault('broken', 'a header has a wrong checksum')
  const ustar = block.toString('latin1', 257, 262) === 'ustar'
  const posix = ustar && block[262] === 0
  const prefix = posix ? field(block, 345, 155) : ''
  const name = field(block, 0, 100)
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    executable: (parseNumber(block, 100, 8) & 0o111) !== 0,
    size: parseNumber(block, 124, 12),
    type: String.fromCharCode(block[156] ?? 0),
    linkName: field(block, 157, 100),
  }
}

function checksum(block: Buffer): number {
  return block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0)
}

function field(block: Buffer, start: number, length: number): string {
  const bytes = block.subarray(start, start + length)
  const end = bytes.indexOf(0)
  return bytes.toString('utf8', 0, end === -1 ? length : end)
}

/** Octal text, or big-endian binary when the first bit is set. */
function parseNumber(block: Buffer, start: number, length: number): number {
  const first = block[start] ?? 0
  if (first >= 0x80) return parseBinary(block.subarray(start, start + length))
  const digits = field(block, start, length).trim()
  if (!/^[0-7]*$/.test(digits)) throw new ArchiveFault('broken', 'a header has a bad number')
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

function parseBinary(bytes: Buffer): number {
  const value = bytes.subarray(1).reduce((sum, byte) => sum * 256 + byte, (bytes[0] ?? 0) & 0x7f)
  if (!Number.isSafeInteger(value)) throw new ArchiveFault('broken', 'a header has a bad number')
  return value
}

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK

async function readMeta(reader: ByteReader, header: Header): Promise<Buffer> {
  if (header.size > LONGEST_META) throw new ArchiveFault('large', 'a name is too long')
  const content = (await reader.read(header.size)) ?? Buffer.alloc(0)
  await reader.skip(padding(header.size))
  return content
}

/** Entries that only describe the next one. Global pax headers carry comments, no names. */
const META: Readonly<Record<string, (content: Buffer) => Said>> = {
  L: (content) => ({ name: field(content, 0, content.length) }),
  K: (content) => ({ linkName: field(content, 0, content.length) }),
  x: parsePax,
  g: () => ({}),
}

function parsePax(content: Buffer): Said {
  const said: Said = {}
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at)
    const length = Number(content.toString('latin1', at, space))
    if (space === -1 || !Number.isInteger(length) || length <= space - at || at + length > content.length) {
      throw new ArchiveFault('broken', 'a pax header is malformed')
    }
    const record = content.toString('utf8', space + 1, at + length - 1)
    const equals = record.indexOf('=')
    note(said, record.slice(0, equals), record.slice(equals + 1))
    at += length
  }
  return said
}

function note(said: Said, key: string, value: string): void {
  if (key.startsWith('GNU.sparse')) throw new ArchiveFault('broken', 'it has sparse files')
  if (key === 'path') said.name = value
  if (key === 'linkpath') said.linkName = value
  if (key === 'size') said.size = paxSize(value)
}

function paxSize(value: string): number {
  const size = Number(value)
  if (!Number.isSafeInteger(size) || size < 0) throw new ArchiveFault('broken', 'a pax header has a bad size')
  return size
}

async function place(reader: ByteReader, tree: Tree, header: Header): Promise<void> {
  const kind = KINDS[header.type]
  if (kind === undefined) throw new ArchiveFault('unsafe', `the entry ${header.name} is no file, folder or link`)
  await kind(reader, tree, header)
}

const KINDS: Readonly<Record<string, (reader: ByteReader, tree: Tree, header: Header) => Promise<void>>> = {
  '0': addFile,
  '\0': addFile,
  '7': addFile,
  '1': (_reader, tree, header) => tree.addHardLink(header.name, header.linkName),
  '2': async (_reader, tree, header) => tree.addSymlink(header.name, header.linkName),
  '5': (_reader, tree, header) => tree.addFolder(header.name),
}

async function addFile(reader: ByteReader, tree: Tree, header: Header): Promise<void> {
  // Before ustar a folder was a file whose name ends with a slash.
  if (header.name.endsWith('/')) return tree.addFolder(header.name)
  await tree.addFile(header.name, header.executable, reader.stream(header.size))
  await reader.skip(padding(header.size))
}
