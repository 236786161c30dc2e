/** The dialects a bus speaks, as one list for the kernel: a message is of the first that recognises it. */
import type { DialectTable } from '../kernel/dialect-table.ts'
import { ACP } from './acp.ts'
import { MCP_LEGACY } from './mcp-legacy.ts'
import { MCP_MODERN } from './mcp-modern.ts'

export const DIALECTS: readonly DialectTable[] = [MCP_MODERN, MCP_LEGACY, ACP]
