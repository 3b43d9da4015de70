// The person at an agent that lets a program answer what servers ask: says yes, and writes down what the question was.
//
//   node hook.mjs FILE

import { appendFileSync, readFileSync } from 'node:fs';

const { hook_event_name: event, message } = JSON.parse(readFileSync(0, 'utf8'));
appendFileSync(process.argv[2], `${JSON.stringify(message)}\n`);
console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: event, action: 'accept', content: {} } }));
