/** Bytes that mean something in JSON. */
export const NEWLINE: u8 = 0x0a
export const CARRIAGE_RETURN: u8 = 0x0d
export const SPACE: u8 = 0x20
export const QUOTE: u8 = 0x22
export const COMMA: u8 = 0x2c
export const MINUS: u8 = 0x2d
export const PLUS: u8 = 0x2b
export const DOT: u8 = 0x2e
export const ZERO: u8 = 0x30
export const COLON: u8 = 0x3a
export const BACKSLASH: u8 = 0x5c
export const OPEN_OBJECT: u8 = 0x7b
export const CLOSE_OBJECT: u8 = 0x7d
export const LOWER_U: u8 = 0x75
