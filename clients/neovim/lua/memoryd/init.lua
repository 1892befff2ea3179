-- Searching the memory from Neovim: hits in the quickfix list or in a list to choose from. See doc/memoryd.txt.
local config = require('memoryd.config')
local rpc = require('memoryd.rpc')

local M = {}

local roots = { by_name = {}, connection = 0 } -- of the workspaces, as the daemon of this connection has them

function M.setup(options)
  config.set(options)
end

local function complain(problem)
  vim.notify('memoryd: ' .. problem.message .. (problem.hint and '\n→ ' .. problem.hint or ''), vim.log.levels.ERROR)
end

-- Whether it is known where every hit's workspace is; a daemon that read its configuration again may serve others.
local function knows_roots(hits)
  for _, hit in ipairs(hits) do
    if not roots.by_name[hit.workspace] then
      return false
    end
  end
  return #hits == 0 or roots.connection == rpc.connections()
end

-- The hits name files relative to their workspaces; the daemon knows where those are.
local function with_roots(hits, callback)
  if knows_roots(hits) then
    callback(nil)
    return
  end
  rpc.request('status', {}, function(problem, status)
    if not problem then
      roots = { by_name = {}, connection = rpc.connections() }
      for _, workspace in ipairs(status.workspaces) do
        roots.by_name[workspace.name] = workspace.root
      end
    end
    callback(problem)
  end)
end

-- The line of the best passage that has most of what was asked for, and its text; the first line where none has any.
local function best_line(hit)
  local lines = vim.split(hit.snippet, '\n', { plain = true })
  local marks = {}
  for _, range in ipairs(hit.highlights) do
    local before = vim.fn.strcharpart(hit.snippet, 0, range[1])
    local number = hit.snippet_line + select(2, before:gsub('\n', ''))
    marks[number] = (marks[number] or 0) + 1
  end
  local best, most = hit.best.start_line, marks[hit.best.start_line] or 0
  for number = hit.best.start_line + 1, hit.best.end_line do
    if (marks[number] or 0) > most then
      best, most = number, marks[number]
    end
  end
  return best, vim.trim(lines[best - hit.snippet_line + 1] or '')
end

local function quickfix_item(hit)
  local line, text = best_line(hit)
  return {
    filename = (roots.by_name[hit.workspace] or '') .. '/' .. hit.path,
    lnum = line,
    col = 1,
    text = ('%.2f %s%s'):format(hit.score, hit.heading ~= '' and hit.heading .. ': ' or '', text),
  }
end

-- What must be known to judge the answer.
local function caveats(answer)
  local words = {}
  if #answer.results == 0 then
    table.insert(words, 'Nothing found' .. (answer.absence and ': ' .. answer.absence.reason or '') .. '.')
    if answer.absence and answer.absence.hint then
      table.insert(words, '→ ' .. answer.absence.hint)
    end
  end
  if answer.doubt then
    table.insert(words, 'Doubtful: ' .. answer.doubt.reason .. '.')
  end
  if answer.degraded then
    local what = answer.degraded.leg == 'vector' and 'By keywords alone' or 'Not all of it was searched'
    table.insert(words, what .. ': ' .. (answer.degraded.reason or '') .. '.')
  end
  if answer.pending_count > 0 then
    table.insert(words, answer.pending_count .. ' changed files are not wholly searchable yet.')
  end
  return words
end

--- Searches, and calls back with (problem, answer, items): the daemon's answer, and its hits as quickfix items.
--- `options` are the parameters of the socket's search, over the settings.
function M.search(query, options, callback)
  local settings = config.values
  local params = { query = query, limit = settings.limit, min_score = settings.min_score }
  params.scope, params.workspace = settings.scope, settings.workspace
  params = vim.tbl_extend('force', params, options or {})
  rpc.request('search', params, function(problem, answer)
    if problem then
      callback(problem)
      return
    end
    with_roots(answer.results, function(no_roots)
      callback(no_roots, answer, not no_roots and vim.tbl_map(quickfix_item, answer.results) or nil)
    end)
  end)
end

--- Opens the file of a quickfix item at its line.
function M.jump(item)
  vim.cmd('normal! m`') -- so that CTRL-O leads back
  vim.cmd('edit ' .. vim.fn.fnameescape(item.filename))
  local last = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_win_set_cursor(0, { math.min(item.lnum, last), 0 })
  vim.cmd('normal! zvzz')
end

-- In the quickfix window, p shows the hit under the cursor in the preview window.
local function show_quickfix(query, items)
  vim.fn.setqflist({}, ' ', { title = 'memory: ' .. query, items = items })
  vim.cmd('botright copen')
  vim.keymap.set('n', 'p', function()
    local entry = vim.fn.getqflist()[vim.fn.line('.')]
    if entry and entry.bufnr > 0 then
      vim.cmd(('pedit +%d %s'):format(entry.lnum, vim.fn.fnameescape(vim.fn.bufname(entry.bufnr))))
    end
  end, { buffer = true, desc = 'Preview this hit' })
end

local function choose(query, items)
  vim.ui.select(items, {
    prompt = 'memory: ' .. query,
    kind = 'memoryd',
    format_item = function(item)
      return ('%s:%d  %s'):format(vim.fn.fnamemodify(item.filename, ':t'), item.lnum, item.text)
    end,
  }, function(item)
    if item then
      M.jump(item)
    end
  end)
end

local function show(query, pick)
  M.search(query, {}, function(problem, answer, items)
    if problem then
      complain(problem)
      return
    end
    local words = caveats(answer)
    if #words > 0 then
      vim.notify('memoryd: ' .. table.concat(words, '\n'), vim.log.levels.WARN)
    end
    if #items > 0 then
      (pick and choose or show_quickfix)(query, items)
    end
  end)
end

local function selection(command)
  local lines = vim.api.nvim_buf_get_lines(0, command.line1 - 1, command.line2, false)
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  if vim.fn.visualmode() == 'v' and from[2] == command.line1 and to[2] == command.line2 then
    lines[#lines] = lines[#lines]:sub(1, to[3])
    lines[1] = lines[1]:sub(from[3])
  end
  return table.concat(lines, ' ')
end

--- What :MemorySearch does: the words given, the lines or the selection, or else asks.
function M.command(command)
  local query = vim.trim(command.args ~= '' and command.args or command.range > 0 and selection(command) or '')
  if query ~= '' then
    show(query, command.bang)
    return
  end
  vim.ui.input({ prompt = 'Search memory: ', default = vim.fn.expand('<cword>') }, function(words)
    if words and vim.trim(words) ~= '' then
      show(vim.trim(words), command.bang)
    end
  end)
end

--- What :MemoryStatus does. With a callback: (problem, lines, status) instead of printing.
function M.status(callback)
  rpc.request('status', {}, function(problem, status)
    if problem then
      (callback or complain)(problem)
      return
    end
    local lines = { ('memoryd %s: %s'):format(status.version, status.health.state) }
    for _, reason in ipairs(status.health.reasons) do
      table.insert(lines, '  ' .. reason.message .. (reason.hint and ' → ' .. reason.hint or ''))
    end
    for _, workspace in ipairs(status.workspaces) do
      local facts = { workspace.name, workspace.root, workspace.indexed, workspace.pending, #workspace.failed }
      table.insert(lines, ('  %s (%s): %d files, %d pending, %d failed'):format(unpack(facts)))
    end
    if callback then
      callback(nil, lines, status)
    else
      vim.api.nvim_echo({ { table.concat(lines, '\n') } }, true, {})
    end
  end)
end

return M
