// memoryd from Node, by the JSON-RPC library of VS Code: Content-Length framing over the daemon's Unix socket.
//
//   const memory = await connect()
//   const { results } = await memory.sendRequest('search', { query: 'goats', limit: 3 })
//   memory.dispose()
//
// What comes back is vscode-jsonrpc's MessageConnection: requests, cancellation tokens and notifications are as an
// extension's author knows them. The methods are in docs/protocol.md.
import { existsSync } from 'node:fs'
import { createConnection } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import * as library from 'vscode-jsonrpc/node'

const rpc = library.default ?? library // CommonJS or not, by its version

/** Where the daemon listens, by its own rules for its default. */
export function socketPath(env = process.env) {
  const absolute = (value) => (value?.startsWith('/') ? value : undefined)
  const session = `/run/user/${process.getuid()}`
  if (env.MEMORYD_PATHS__SOCKET) return env.MEMORYD_PATHS__SOCKET
  if (absolute(env.XDG_RUNTIME_DIR)) return join(env.XDG_RUNTIME_DIR, 'memoryd/memoryd.sock')
  if (existsSync(session)) return join(session, 'memoryd/memoryd.sock')
  return join(absolute(env.XDG_DATA_HOME) ?? join(homedir(), '.local/share'), 'memoryd/run/memoryd.sock')
}

/** A listening MessageConnection; rejects with the remedy where there is no daemon. */
export function connect(path = socketPath()) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path)
    socket.once('error', (cause) =>
      reject(new Error(`No memoryd daemon is listening on ${path}. Start it with 'memoryd run'.`, { cause })),
    )
    socket.once('connect', () => {
      const connection = rpc.createMessageConnection(
        new rpc.SocketMessageReader(socket),
        new rpc.SocketMessageWriter(socket),
      )
      connection.onDispose(() => socket.destroy())
      connection.listen()
      resolve(connection)
    })
  })
}
