/** Whether the window is as a media query says, now and when that changes. */
import { useEffect, useState } from 'preact/hooks'

export function useMedia(condition: string): boolean {
  const [isSo, setSo] = useState(() => matchMedia(condition).matches)
  useEffect(() => {
    const list = matchMedia(condition)
    const look = (): void => setSo(list.matches)
    look()
    list.addEventListener('change', look)
    return () => list.removeEventListener('change', look)
  }, [condition])
  return isSo
}
