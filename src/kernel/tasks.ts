/**
 * Tasks that answers announce: whose they are, and the progress tokens that live as long as they do (spec M12, M20).
 *
 * A task belongs to whoever started it. Its token outlives the answer that announced it, and no longer than the task or its
 * client; both tables are bounded.
 */
import { ownMap } from './empty.ts'
import { FIXED } from './limits.ts'
import type { Request } from './owed.ts'
import type { Client, TaskOwner, Worker } from './peers.ts'

export function taskOwnerOf(client: Client): TaskOwner {
  return client.isBrief ? client.principal : client
}

/** The client that hears of the task. */
export function taskClientOf(worker: Worker, taskId: string): Client | undefined {
  const owner = worker.tasks.get(taskId)
  return typeof owner === 'string' ? undefined : owner
}

/** The answer to `request` announces the task. */
export function beginTask(worker: Worker, taskId: string, client: Client, request: Request): void {
  if (worker.tasks.has(taskId)) return
  worker.tasks = ownMap(worker.tasks).set(taskId, taskOwnerOf(client))
  if (worker.tasks.size > FIXED.maxTasks) for (const oldest of worker.tasks.keys()) return forgetTask(worker, oldest)
  if (client.isBrief || request.token === undefined || worker.tokens.has(request.token)) return
  worker.tokens = ownMap(worker.tokens).set(request.token, request)
  worker.taskTokens = ownMap(worker.taskTokens).set(taskId, request)
}

/** The task is over, for all that is known: nothing more is heard of its progress. */
export function endTask(worker: Worker, taskId: string): void {
  const request = worker.taskTokens.get(taskId)
  if (request === undefined) return
  worker.taskTokens.delete(taskId)
  if (worker.tokens.get(request.token!) === request) worker.tokens.delete(request.token!)
}

function forgetTask(worker: Worker, taskId: string): void {
  worker.tasks.delete(taskId)
  endTask(worker, taskId)
}

/** The client has gone, and its tasks with it. */
export function forgetTasksOf(worker: Worker, client: Client): void {
  for (const [taskId, owner] of worker.tasks) if (owner === client) forgetTask(worker, taskId)
}
