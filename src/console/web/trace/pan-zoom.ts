/** What part of a picture is seen, as arithmetic: where it lies and how large it is drawn. */
export interface Viewpoint {
  readonly x: number
  readonly y: number
  readonly scale: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

const MIN_SCALE = 0.05
const MAX_SCALE = 4
const ROOM_PX = 16

/** All of it in the middle; what is small is not blown up. */
export function fitInto(picture: Size, box: Size): Viewpoint {
  const wanted = Math.min((box.width - ROOM_PX) / picture.width, (box.height - ROOM_PX) / picture.height, 1)
  const scale = within(wanted)
  return { scale, x: (box.width - picture.width * scale) / 2, y: (box.height - picture.height * scale) / 2 }
}

/** Larger or smaller, with what lies at a point staying there. */
export function zoomAt(view: Viewpoint, at: { readonly x: number; readonly y: number }, factor: number): Viewpoint {
  const scale = within(view.scale * factor)
  const share = scale / view.scale
  return { scale, x: at.x - (at.x - view.x) * share, y: at.y - (at.y - view.y) * share }
}

export function move(view: Viewpoint, byX: number, byY: number): Viewpoint {
  return { ...view, x: view.x + byX, y: view.y + byY }
}

function within(scale: number): number {
  return Math.min(MAX_SCALE, Math.max(MIN_SCALE, Number.isFinite(scale) ? scale : 1))
}
