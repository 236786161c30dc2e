/** The dialects a bus speaks, as one value for the kernel. */
import type { Dialects } from '../kernel/dialect.ts'
import { ACP } from './acp.ts'
import { MCP_LEGACY } from './mcp-legacy.ts'
import { MCP_MODERN } from './mcp-modern.ts'

export const DIALECTS: Dialects = { acp: ACP, mcpLegacy: MCP_LEGACY, mcpModern: MCP_MODERN }
