/**
 * The seam between what was said and what is live, cut at every line of a transcript (contract 12.12, 12.13, 12.19): however
 * the journal lags, whoever comes gets every line once and in order.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { FakeJournal } from './fake-journal.ts'
import { KeptStage } from './kept-stage.ts'

/** Two turns, with words between them. */
const TRANSCRIPT: readonly ((stage: KeptStage) => void)[] = [
  (stage) => stage.update({ sessionUpdate: 'available_commands_update', availableCommands: [] }),
  ...Array.from({ length: 5 }, (_, n) => (stage: KeptStage) => stage.chunk(`a${n}`)),
  (stage) => stage.endTurn(),
  (stage) => stage.chunk('between'),
  (stage) => stage.chunk('turns'),
]
const SAID = ['> go', 'available_commands_update', 'a0', 'a1', 'a2', 'a3', 'a4', 'between', 'turns']
const isSaid = (line: string): boolean => !/^(turn |driver |ok |#)/.test(line)

/** When the journal writes and answers: after each line, so many orders and so many answers. */
type Pace = readonly { readonly writes: number; readonly answers: number }[]
const pace = fc.array(fc.record({ writes: fc.nat(4), answers: fc.nat(2) }), { minLength: 12, maxLength: 12 })

class Play {
  readonly stage: KeptStage
  readonly journal = new FakeJournal()
  readonly #pace: Pace
  #step = 0

  constructor(isJournaled: boolean, pace: Pace) {
    this.#pace = pace
    this.stage = new KeptStage({ isJournaled })
    if (isJournaled) this.journal.open(this.stage)
  }

  /** Somebody begins, and is there for the first `until` lines; then the others follow. */
  run(until: number, come: () => void, comesAt: number): void {
    const { stage } = this
    const first = stage.come('first')
    stage.open(first)
    stage.prompt(first, 'go')
    for (const [n, line] of TRANSCRIPT.entries()) {
      if (n === until) stage.leave(first)
      if (n === comesAt) come()
      line(stage)
      this.#work()
    }
    if (comesAt >= TRANSCRIPT.length) come()
    for (let rest = 0; rest < 50; rest++) this.#finish()
  }

  #work(): void {
    const { writes, answers } = this.#pace[this.#step++ % this.#pace.length]!
    this.journal.write(this.stage, writes)
    for (let n = 0; n < answers; n++) this.journal.answer(this.stage)
  }

  #finish(): void {
    this.journal.write(this.stage)
    this.journal.answer(this.stage)
  }
}

describe.each([
  ['in memory', false],
  ['on disk', true],
])('%s', (_where, isJournaled) => {
  test('load: all of it before or after the answer, each line once, in order', () => {
    verifies('12.12-seam')
    fc.assert(
      fc.property(pace, fc.nat(TRANSCRIPT.length), fc.nat(TRANSCRIPT.length), (rhythm, until, comesAt) => {
        const play = new Play(isJournaled, rhythm)
        let client = 0
        let from = 0
        play.run(
          until,
          () => {
            client = play.stage.come('second')
            from = play.stage.count(client)
            play.stage.load(client)
          },
          comesAt,
        )
        const heard = play.stage.heard(client, from)
        expect(heard.filter(isSaid)).toEqual(SAID)
        expect(heard.filter((line) => line.startsWith('ok'))).toHaveLength(1)
      }),
      { numRuns: 150 },
    )
  })

  test('every cut, one by one', () => {
    verifies('12.12-seam')
    for (let until = 0; until <= TRANSCRIPT.length; until++) {
      for (let comesAt = 0; comesAt <= TRANSCRIPT.length; comesAt++) {
        const play = new Play(isJournaled, [{ writes: 2, answers: 1 }])
        let client = 0
        play.run(
          until,
          () => {
            client = play.stage.come('second')
            play.stage.load(client)
          },
          comesAt,
        )
        expect(
          play.stage
            .heard(client)
            .filter(isSaid)
            .filter((line) => !line.startsWith('initialize')),
          `${until} ${comesAt}`,
        ).toEqual(SAID)
      }
    }
  })

  test('an observer from any number gets every number from there on', () => {
    verifies('12.19-numbers')
    fc.assert(
      fc.property(pace, fc.nat(TRANSCRIPT.length), fc.integer({ min: 1, max: 12 }), (rhythm, comesAt, wished) => {
        const play = new Play(isJournaled, rhythm)
        const { stage } = play
        const watcher = stage.connect()
        const all = stage.connect()
        let from = 0
        play.run(
          TRANSCRIPT.length,
          () => {
            const id = stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: wished })
            from = stage.answerTo(watcher, id)!.error === undefined ? wished : 0
          },
          comesAt,
        )
        stage.ask(all, 'bus::sessions.attach', { session: 's', role: 'observe', from: 1 })
        for (let n = 0; n < 50; n++) {
          play.journal.write(stage)
          play.journal.answer(stage)
        }
        if (from === 0) return
        const seen = stage.heard(watcher).slice(1)
        const whole = stage.heard(all).slice(1)
        expect(seen.slice(0, whole.length - from)).toEqual(whole.slice(from - 1, whole.length - 1))
      }),
      { numRuns: 100 },
    )
  })

  test('resume: what nobody was sent, once; and nothing that somebody was', () => {
    verifies('12.13-resume')
    fc.assert(
      fc.property(pace, fc.nat(TRANSCRIPT.length - 1), (rhythm, until) => {
        const play = new Play(isJournaled, rhythm)
        let client = 0
        let from = 0
        let sent: string[] = []
        const first = 1
        play.run(
          until,
          () => {
            sent = play.stage.heard(first).filter((line) => SAID.includes(line))
            client = play.stage.come('second')
            from = play.stage.count(client)
            play.stage.resume(client)
          },
          TRANSCRIPT.length,
        )
        const heard = play.stage.heard(client, from).filter(isSaid)
        // What its sender has said it knows; one that was gone before the agent spoke was sent nothing.
        const rest = (until === 0 ? SAID : SAID.slice(1)).filter((line) => !sent.includes(line))
        expect(heard.filter((line) => line !== 'available_commands_update')).toEqual(
          rest.filter((line) => line !== 'available_commands_update'),
        )
        expect(heard.filter((line) => line === 'available_commands_update')).toHaveLength(1)
      }),
      { numRuns: 100 },
    )
  })
})

test('a journal that was cut or edited: what is left is told, and those who count hear of the gap', () => {
  verifies('12.11-edited')
  const journal = new FakeJournal()
  const before = new KeptStage({ isJournaled: true })
  journal.open(before)
  const first = before.come('first')
  before.open(first)
  for (let n = 0; n < 8; n++) before.chunk(`line ${n}`)
  journal.write(before)
  const written = journal.sessions.get('["local","s"]')!
  written.lines.delete(4)
  written.lines.set(5, { kind: 'update', bytes: Buffer.from('{"not": json\n') })
  written.lines.set(6, {
    kind: 'update',
    bytes: Buffer.from('{"jsonrpc":"2.0","method":"x"}\n{"jsonrpc":"2.0","method":"y"}\n'),
  })
  journal.restart()
  const after = new KeptStage({ isJournaled: true })
  journal.open(after)
  const [client, watcher] = [after.come(), after.connect()]
  const from = after.count(client)
  after.load(client)
  after.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: 1 })
  for (let n = 0; n < 20; n++) {
    journal.write(after)
    journal.answer(after)
  }
  const heard = after.heard(client, from)
  expect(heard.slice(0, -2)).toEqual(['line 0', 'line 1', 'line 5', 'line 6', 'line 7'])
  const gap = after.atClient.get(watcher)!.find(({ params }) => params?.kind === 'gap')!
  expect(gap.params).toMatchObject({ seq: 6, from: 4, to: 6 })
})

test('who is refused by the agent and reads on while it brings the session back for another is told to ask again', () => {
  verifies('12.16-lost')
  const journal = new FakeJournal()
  const before = new KeptStage({ isJournaled: true })
  journal.open(before)
  before.open(before.come('first'))
  before.chunk('said')
  journal.write(before)
  journal.restart()
  const after = new KeptStage({ isJournaled: true })
  journal.open(after)
  const comes = (): number => {
    const client = after.connect()
    after.ask(client, 'initialize', { protocolVersion: 1 })
    after.say(0, { id: after.told(0, 'initialize').id, result: { agentCapabilities: { loadSession: true } } })
    return client
  }
  const [refused, granted] = [comes(), comes()]
  const id = after.load(refused)
  after.say(0, { id: after.told(0, 'session/load').id, error: { code: -32002, message: 'no' } })
  after.load(granted)
  after.chunk('told again')
  after.say(0, { id: after.told(0, 'session/load').id, result: {} })
  const finish = (): void => {
    for (let n = 0; n < 20; n++) {
      journal.write(after)
      journal.answer(after)
    }
  }
  finish()
  expect(after.answerTo(refused, id)!.error.data).toMatchObject({ reason: 'session_busy', retryable: true })
  expect(after.heard(refused).join()).not.toMatch(/lost/)
  const from = after.count(refused)
  const again = after.load(refused)
  finish()
  expect(after.heard(refused, from).slice(0, 2)).toEqual(['told again', `ok ${again}`])
})

test('who reads what was said in a session is told nothing of the next one of its name', () => {
  verifies('12.19-numbers')
  const journal = new FakeJournal()
  const before = new KeptStage({ isJournaled: true })
  journal.open(before)
  before.open(before.come())
  before.chunk('said in the first')
  journal.write(before)
  journal.restart()
  const after = new KeptStage({ isJournaled: true })
  journal.open(after)
  const client = after.come()
  const watchers = [after.connect(), after.connect()] as const
  const watch = (watcher: number): number =>
    after.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: 1 })
  watch(watchers[0])
  journal.write(after)
  after.open(client)
  after.chunk('said in the second')
  for (let n = 0; n < 20; n++) {
    journal.write(after)
    journal.answer(after, 1)
  }
  expect(after.heard(watchers[0]).join()).not.toContain('second')
  expect(after.atClient.get(watchers[0])!.at(-1)!.params).toMatchObject({ kind: 'gap', from: 1, to: 2 })
  watch(watchers[1])
  for (let n = 0; n < 20; n++) {
    journal.write(after)
    journal.answer(after)
  }
  expect(after.heard(watchers[1])).toContain('said in the second')
})

test('a journal that cannot be read: the session is shown as lost, and nobody waits for ever', () => {
  const after = new KeptStage({ isJournaled: true })
  const times = { createdAtMs: 1, updatedAtMs: 1, seq: 5, firstSeq: 1, bytes: 500, isLost: false }
  const stored = { session: 's', pool: 'p', principal: 'local', cwd: '/', title: '', ...times }
  after.tell({ type: 'journal-opened', sessions: [stored] })
  const client = after.come()
  const id = after.load(client)
  const read = after.journal.find(({ order }) => order === 'read') as { reader: number }
  after.tell({ type: 'journal-lines', reader: read.reader, entries: [], bytes: Buffer.alloc(0) })
  expect(after.answerTo(client, id)).toBeDefined()
})

test('what is said while nothing can be written is told to the journal when it can again, each number once', () => {
  verifies('12.10-full-disk')
  const journal = new FakeJournal()
  const stage = new KeptStage({ isJournaled: true })
  journal.open(stage)
  const client = stage.come()
  stage.open(client)
  stage.chunk('before')
  journal.write(stage)
  stage.tell({ type: 'journal-changed', isWriting: false })
  // What the kernel orders now goes to nobody.
  stage.journal.length = 0
  journal.restart()
  stage.chunk('meanwhile')
  stage.journal.length = 0
  const watcher = stage.connect()
  const id = stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: 3 })
  expect(stage.heard(watcher).slice(0, 2)).toEqual([`ok ${id}`, 'meanwhile'])
  stage.journal.length = 0
  stage.tell({ type: 'journal-changed', isWriting: true })
  stage.chunk('after')
  journal.write(stage)
  const lines = [...journal.sessions.get('["local","s"]')!.lines].sort((a, b) => a[0] - b[0])
  expect(lines.map(([seq]) => seq)).toEqual(lines.map((_, index) => index + 1))
  for (const text of ['before', 'meanwhile', 'after'])
    expect(lines.filter(([, { bytes }]) => bytes.includes(`"${text}"`))).toHaveLength(1)
})

describe('what holds in a session while nothing can be written', () => {
  const fail = (stage: KeptStage, journal: FakeJournal, during: () => void): void => {
    stage.tell({ type: 'journal-changed', isWriting: false })
    during()
    stage.journal.length = 0
    journal.restart()
    stage.tell({ type: 'journal-changed', isWriting: true })
    journal.write(stage)
  }

  test('is told to the journal when it can again', () => {
    const journal = new FakeJournal()
    const stage = new KeptStage({ isJournaled: true })
    journal.open(stage)
    stage.open(stage.come())
    stage.update({ sessionUpdate: 'plan', entries: ['before'] })
    journal.write(stage)
    fail(stage, journal, () => {
      stage.update({ sessionUpdate: 'plan', entries: ['meanwhile'] })
      stage.update({ sessionUpdate: 'current_mode_update', currentModeId: 'ask' })
    })
    const { states } = journal.sessions.get('["local","s"]')!
    expect(String(states.get('plan')?.bytes)).toContain('meanwhile')
    expect(String(states.get('current_mode_update')?.bytes)).toContain('ask')
  })

  test('is that of the session which was brought back then, not of the one before', () => {
    const journal = new FakeJournal()
    const before = new KeptStage({ isJournaled: true })
    journal.open(before)
    before.open(before.come())
    before.update({ sessionUpdate: 'plan', entries: ['before'] })
    journal.write(before)
    journal.restart()
    const stage = new KeptStage({ isJournaled: true })
    journal.open(stage)
    const client = stage.connect()
    stage.ask(client, 'initialize', { protocolVersion: 1 })
    stage.say(0, { id: stage.told(0, 'initialize').id, result: { agentCapabilities: { loadSession: true } } })
    fail(stage, journal, () => {
      stage.load(client)
      stage.chunk('told again')
      stage.say(0, { id: stage.told(0, 'session/load').id, result: {} })
    })
    const { states, lines } = journal.sessions.get('["local","s"]')!
    expect([...states]).toEqual([])
    expect([...lines.values()].some(({ bytes }) => bytes.includes('told again'))).toBe(true)
  })
})
