/**
 * Seeds that find, with the worlds of today, bugs that the simulator found in the kernel and that are mended.
 *
 * When the worlds change, a seed may no longer lead to its bug: `npm run simulate:planted` proves that bugs of these kinds
 * are still found.
 */
export const REGRESSION_EVENTS = 600
/** Worlds that need longer to lead to their bug. */
export const LONG_REGRESSION_EVENTS = 2_000

export const LONG_REGRESSIONS: readonly (readonly [seed: number, what: string])[] = [
  [971665443, 'a cancel that has waited does not mean a request that came after it'],
  [300002112, 'a reload does not let a worker that runs on hear a handshake again'],
  [53155615, 'what names a session waits for the worker for which an earlier message of it waits'],
  [830005290, 'who is stopped and goes on in the same event is silent all the same'],
  [810004902, 'a worker has the time that its pool gives it, though the bus gives others more'],
  [1010002626, 'what has waited while a reload gave its pool a time has that time'],
  [310002393, 'who waits for the whole bus and fills a queue waits for that queue'],
]

export const REGRESSIONS: readonly (readonly [seed: number, what: string])[] = [
  [2, 'who waits for a worker is served before what lies behind it'],
  [2, 'a message that waited dies with its client'],
  [3, 'several members cut from the end of a line leave no comma behind'],
  [22, "a client's own worker of a retired pool ends with the client"],
  [26, 'a worker that has ended remembers no client'],
  [33, 'the answer to a repeated initialize may find its client gone'],
  [47, 'a worker that has ended is not greeted once more'],
  [79, 'a client that a lease leads back to a worker is not introduced there again'],
  [152, 'the subscriptions of a client that has gone end at every worker'],
  [188, 'nothing of a client overtakes what waits for a handshake under way, notifications neither'],
  [286, 'what a client has shown it speaks holds before a worker has answered'],
  [404, 'a leased worker that was welcomed in one version is not lent to a client of another'],
  [488, 'a message that names a session is for its owner or for nobody'],
  [875, 'a worker whose last line filled a queue is buried all the same'],
  [1141, 'a lease waits with the messages that wait for a repeated initialize'],
  [1673, 'nobody is led back to a worker that is just ending'],
  [966447242, 'a message that waited for a lease when its pool was replaced waits for any worker of the new one'],
  [795908315, 'who never introduced itself sees no session of others at an agent, and others see none of its own'],
  [805580949, 'what waited for a session reaches its owner or nobody, whatever the worker speaks by then'],
]

/** The same in worlds with agents that are called. */
export const AIO_REGRESSIONS: typeof REGRESSIONS = [
  [1, 'a subscription that the bus keeps for all has its time like any request'],
  [128, 'an exchange that the bus refuses hears of it'],
  [228, 'a part of an answer does not give back the id of a cancelled call'],
  [565, 'what the gateway adds does not make a line too long'],
  [930, 'the beginning of a line that is never taken is not kept, and counts for nobody'],
  [2138, 'a worker of a pool that is no agent any more gets nothing that MCP does not know'],
  [901001739, 'the number of a worker that has stopped may be given on before the bus has said that it has stopped'],
]

/** The same after a while. */
export const LONG_AIO_REGRESSIONS: typeof REGRESSIONS = [
  [810000308, 'a session that has a worker is not led away from it by what waits for another'],
  [830001617, 'who holds most of all may hold what the very event has brought'],
  [830001725, 'a worker of its own ends with its client also where a reload has let that go on'],
]

/** In worlds with principals. */
export const LONG_ACCESS_REGRESSIONS: typeof REGRESSIONS = [
  [51301352, 'what names a session stays behind what names it too and waits at another pool'],
  [840000127, 'who was stopped for one that goes in the same event is stopped for the next with its next line'],
  [830006241, 'a worker that ends while its client has another is not held by that client when it has gone'],
  [830002025, 'of two clients that go on in one event either may have used up what their principal may ask'],
  [810000353, 'a credential in a last line without newline is judged, and answered, before its client has finished'],
  [810002334, 'the close of a session whose pool was lost ends its turn, and its client has nothing left to cancel'],
  [710000411, 'who held most and has read it all in the event is not the one to be closed'],
]

/** In worlds of sessions that outlive their clients. */
export const KEPT_REGRESSIONS: typeof REGRESSIONS = [
  [2, 'a prompt that never reached its agent was not said'],
  [4, 'the end of a process begins no turn that waited'],
  [12, 'what an agent says before it has heard a prompt does not belong to it'],
  [19, 'what is written while the journal is asked is not taken for lost'],
  [29, 'a name that means a session of somebody else is not asked for'],
  [35, 'a load is answered though its session ends in the middle of the replay, and so are those that waited for it'],
  [45, 'no session begins under a name that is just being brought back'],
  [76, 'who looks on does not prompt, and a session that nobody takes part in is detached'],
  [144, 'what was said in an earlier session of the same name is not told in the next'],
  [208, 'the time of an ended session does not take the next one of its name with it'],
  [272, 'what is told again for somebody who has gone is not for the next session of its name'],
  [213, 'a session that is being brought back is not forgotten meanwhile'],
  [870004322, 'an agent that has not heard of the end of a session repeats nothing of what was said with that'],
  [870007470, 'who reads an earlier session of the name reads it no more when it comes to the next one'],
  [860005357, 'what is past of a session that ended in the replay leaves out what its reader has said itself too'],
  [
    860008187,
    'who has resumed and gone again before it heard anything has not been sent what it would have begun with',
  ],
  [860006667, 'who is told of a gap, since another session has begun under the name, does not hear what was there'],
  [900000294, 'who only looks on from now on has not been sent what it had not come to as one that took part'],
]
