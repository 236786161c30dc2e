export const hostile = { name: 'hostile', title: 'x', async run() {} }
