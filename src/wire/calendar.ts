/** A moment as people and programs write it, without asking what time it is: whoever has no clock can still spell one. */

const DAY_MS = 86_400_000
/** From the first of March of the year 0 to the first of January of 1970, in days of the Gregorian calendar. */
const EPOCH_DAYS = 719_468
const ERA_DAYS = 146_097

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, for the years from 0 to 9999. */
export function spellTime(ms: number): string {
  const whole = Math.floor(ms)
  const days = Math.floor(whole / DAY_MS)
  const rest = whole - days * DAY_MS
  const time = [3_600_000, 60_000, 1_000].map((unit, index) =>
    digits(Math.floor(rest / unit) % (index === 0 ? 24 : 60), 2),
  )
  return `${spellDay(days)}T${time.join(':')}.${digits(rest % 1_000, 3)}Z`
}

/** Years that begin in March have their odd day at the end. */
function spellDay(days: number): string {
  const shifted = days + EPOCH_DAYS
  const era = Math.floor(shifted / ERA_DAYS)
  const ofEra = shifted - era * ERA_DAYS
  const yearOfEra = Math.floor(
    (ofEra - Math.floor(ofEra / 1_460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  )
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const march = Math.floor((5 * ofYear + 2) / 153)
  const day = ofYear - Math.floor((153 * march + 2) / 5) + 1
  const month = march < 10 ? march + 3 : march - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  return `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}`
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0')
}
