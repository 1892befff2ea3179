// Run by tests/e2e/test_vscode_jsonrpc.py beside a daemon that serves the notes which that test wrote.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as library from 'vscode-jsonrpc/node'
import { connect, socketPath } from './memoryd.js'

const rpc = library.default ?? library
const notes = process.env.NOTES
let memory

before(async () => {
  memory = await connect()
})
after(() => memory.dispose())

test('initialize tells the version and the capabilities', async () => {
  const said = await memory.sendRequest('initialize', { client: 'vscode-jsonrpc test', protocol_version: 1 })
  assert.equal(said.name, 'memoryd')
  assert.ok(said.capabilities.framings.includes('headers'))
  assert.ok(said.methods.includes('search'))
})

test('search, get and status answer over Content-Length framing', async () => {
  const { results } = await memory.sendRequest('search', { query: 'systemd timers', limit: 1 })
  assert.equal(results[0].path, 'memory/2026-11-15.md')
  const document = await memory.sendRequest('get', { path: results[0].citation })
  assert.match(document.text, /systemd timers/)
  const status = await memory.sendRequest('status')
  assert.equal(status.workspaces[0].root, notes)
})

test('text in any script arrives whole', async () => {
  const { text } = await memory.sendRequest('get', { path: 'memory/日本.md' })
  assert.equal(text, '灯台は霧の中。😀')
  const { query, results } = await memory.sendRequest('search', { query: '灯台の霧 😀' })
  assert.equal(query, '灯台の霧 😀')
  assert.equal(results[0].path, 'memory/日本.md')
})

test('requests in flight together get their own answers', async () => {
  const words = Array.from({ length: 50 }, (_, number) => `note ${number}`)
  const answers = await Promise.all(words.map((query) => memory.sendRequest('search', { query })))
  assert.deepEqual(answers.map((answer) => answer.query), words)
})

test('an error carries its code and its remedy', async () => {
  await assert.rejects(memory.sendRequest('get', { path: 'memory/none.md' }), (error) => {
    assert.ok(error instanceof rpc.ResponseError)
    assert.equal(error.data.code, 'not_found')
    assert.ok(error.data.hint)
    return true
  })
  await assert.rejects(memory.sendRequest('no.such.method', {}), { code: rpc.ErrorCodes.MethodNotFound })
})

test('a request is cancelled by its token', async () => {
  const source = new rpc.CancellationTokenSource()
  const indexing = memory.sendRequest('index', { force: true, wait: true }, source.token)
  source.cancel()
  await assert.rejects(indexing, (error) => error instanceof rpc.ResponseError && /cancel/i.test(error.message))
  assert.ok((await memory.sendRequest('ping')).pong)
})

test('events arrive as notifications', async () => {
  const told = new Promise((resolve) => {
    memory.onNotification('events.document', (event) => event.path === 'memory/new.md' && resolve(event))
  })
  await memory.sendRequest('events.subscribe', { events: ['document'] })
  writeFileSync(join(notes, 'memory/new.md'), 'A lighthouse.\n')
  assert.equal((await told).workspace, 'notes')
  await memory.sendRequest('events.unsubscribe')
})

test('the end of the daemon is noticed, and no daemon is told with the remedy', async () => {
  const other = await connect()
  const closed = new Promise((resolve) => other.onClose(resolve))
  process.kill((await other.sendRequest('ping')).pid, 'SIGTERM')
  await closed
  await assert.rejects(connect(`${socketPath()}.none`), /Start it with 'memoryd run'/)
})
