/**
 * Makes text of peers safe to show: nothing a peer wrote moves the cursor, breaks a line, or hides or reorders what follows.
 *
 * The one place that knows what does not print. What does not is written as an escape, so that nothing gets lost; how long
 * a text may be is for whoever shows it.
 */

/** C0 and C1 controls, line separators, marks that turn the direction of writing around, halves of characters. */
const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069\\ufff9-\\ufffb\\ufffe\\uffff\\p{Cs}'
/** What takes no room and joins or parts its neighbours: part of some scripts, and a disguise in a name. */
const INVISIBLE = '\\u00ad\\u061c\\u200b-\\u200f\\u2060-\\u2065\\u206a-\\u206f\\ufeff'

const UNPRINTABLE = new RegExp(`[${CONTROL}${INVISIBLE}]`, 'gu')
const UNPRINTABLE_IN_PROSE = new RegExp(`(?![\\n\\t])[${CONTROL}]`, 'gu')

/** For one line: a name, a message, a label. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, spellOut)
}

/** For running text, which may have several lines and be in any script. */
export function printableProse(text: string): string {
  return text.replace(UNPRINTABLE_IN_PROSE, spellOut)
}

function spellOut(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
