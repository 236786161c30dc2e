/** The pages as a table: title, path, who may see it, and its view (contract 15.5, 15.6). */
import type { ComponentType } from 'preact'
import type { Me } from './api.ts'
import { Access } from './pages/access.tsx'
import { Chat } from './pages/chat.tsx'
import { Configuration } from './pages/configuration.tsx'
import { Logs } from './pages/logs.tsx'
import { Overview } from './pages/overview.tsx'
import { Sessions } from './pages/sessions.tsx'
import { Tools } from './pages/tools.tsx'
import { Traces } from './pages/traces.tsx'

export interface Page {
  readonly title: string
  /** The first part of its address. */
  readonly path: string
  readonly roles: readonly Me['role'][]
  readonly View: ComponentType
}

const LOOKERS = ['observer', 'admin'] as const
const ALL = ['user', 'observer', 'admin'] as const

export const PAGES: readonly Page[] = [
  { title: 'Overview', path: '', roles: LOOKERS, View: Overview },
  { title: 'Sessions', path: 'sessions', roles: ALL, View: Sessions },
  { title: 'Traces', path: 'traces', roles: ALL, View: Traces },
  { title: 'Tools', path: 'tools', roles: ALL, View: Tools },
  { title: 'Chat', path: 'chat', roles: ALL, View: Chat },
  { title: 'Access', path: 'access', roles: LOOKERS, View: Access },
  { title: 'Logs', path: 'logs', roles: LOOKERS, View: Logs },
  { title: 'Configuration', path: 'config', roles: LOOKERS, View: Configuration },
]

export function pageAt(parts: readonly string[]): Page | undefined {
  return PAGES.find(({ path }) => path === (parts[0] ?? ''))
}
