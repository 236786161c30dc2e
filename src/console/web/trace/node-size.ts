/** How large a node of the graph is: for the thread that lays it out and for the page that draws it. */
export const NODE = { width: 196, height: 54 } as const
