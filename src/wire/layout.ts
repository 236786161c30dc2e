/**
 * Where things lie in the memory of the scanner; compiled into both sides, so it stands nowhere else.
 *
 * `NOTES` is what a scan tells: a few cells, then three rows of one cell for each field. `TREE` holds the fields to look
 * for. `TEXT` is where lines are put; the bytes before it stay zero. Only constant whole numbers may stand here, since
 * AssemblyScript must read them as TypeScript does.
 */

/** What a scan comes to. `unsure` leaves the line to the twin: it has an escaped key. */
export const VERDICT_BROKEN = 0
export const VERDICT_OBJECT = 1
export const VERDICT_OTHER = 2
export const VERDICT_UNSURE = 3
/** Where a message ends that was not read. */
export const NOWHERE = -1

/** Cells of four bytes, from the front of the notes. The id is noted by value when it is an integer that everybody spells alike. */
export const NOTE_TWICE = 0
export const NOTE_ID_IS_INTEGER = 1
export const NOTE_ID_LOW = 2
export const NOTE_ID_HIGH = 3
/** Which of the fields that may stand twice do, a bit for each; it has no bit for slots from COUNTED on. */
export const NOTE_REPEATED = 4
export const COUNTED = 32
export const NOTE_STARTS = 8
/** What a set of 64 bits can hold. */
export const MAX_FIELDS = 64
export const NOTE_ENDS = NOTE_STARTS + MAX_FIELDS
export const NOTE_PLAIN = NOTE_ENDS + MAX_FIELDS
export const NOTE_COUNT = NOTE_PLAIN + MAX_FIELDS

export const NOTES = 64

/** The fields that may not stand twice have the slots below the number in this cell. */
export const ONCE_BELOW_CELL = 1024

/** For every byte, whether it may follow a backslash; the scanner fills it in by itself. */
export const ESCAPES = 1280

/**
 * A table has as many cells as a hash has values: the first field whose key has that hash, or 0. A field is a few cells (the
 * next of the same hash or 0; its slot or -1; its table or 0; the length of its key; the set of slots below it), then a mask
 * of the first vector of its key, then the key with its closing quote, filled up with zeros.
 */
export const TREE = 2048
export const HASHES = 64
/** The hash of a key: its first byte, and its length times this. */
export const HASH_LENGTH = 4
export const FIELD_NEXT = 0
export const FIELD_SLOT = 4
export const FIELD_TABLE = 8
export const FIELD_LENGTH = 12
export const FIELD_BELOW = 16
export const FIELD_MASK = 32
export const FIELD_KEY = 48
export const VECTOR_BYTES = 16

export const TEXT = 16384
/** Longer lines are left to the twin. */
export const MAX_TEXT_BYTES = 1048576
/** A vector may be read up to here beyond the last byte of a text. */
export const MARGIN_BYTES = 64
/** Where the open containers of deeply nested text are kept, a bit for each; text can open no more than it has bytes. */
export const NESTING = TEXT + MAX_TEXT_BYTES + MARGIN_BYTES
export const NESTING_BYTES = MAX_TEXT_BYTES / 8 + 8

/** Where reads of sockets go: a line that lies there is scanned where it is. */
export const READS = NESTING + NESTING_BYTES + MARGIN_BYTES
export const READ_BYTES = 65536
