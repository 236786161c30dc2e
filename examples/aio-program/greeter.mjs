import { connect } from 'stdio-bus/client'

const bus = await connect({ unix: process.argv[2] })
await bus.agent('greeter', {
  input: ({ inputs }, call) => {
    call.partial([{ type: 'text', value: 'Hello' }])
    return { outputs: inputs.map(({ value }) => ({ type: 'text', value: `Hello, ${value}` })) }
  },
})
console.log('The greeter can be called.')
