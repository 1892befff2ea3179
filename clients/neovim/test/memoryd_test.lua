-- Run by tests/e2e/test_neovim.py in a headless Neovim, with a daemon beside it whose notes the test wrote.
-- NOTES is their folder; EXPECT says whether a daemon is there.
local memoryd = require('memoryd')
local rpc = require('memoryd.rpc')
local notes = vim.env.NOTES

local notices = {}
vim.notify = function(message)
  table.insert(notices, message)
end

local function wait(condition)
  assert(vim.wait(20000, condition, 10), 'waited for nothing')
end

local function equal(got, expected)
  assert(vim.deep_equal(got, expected), ('got %s, expected %s'):format(vim.inspect(got), vim.inspect(expected)))
end

local function matches(text, pattern)
  assert(text and text:match(pattern), ('%s does not match %s'):format(vim.inspect(text), pattern))
end

local function quickfix()
  return vim.fn.getqflist({ title = 0, items = 0 })
end

local function here()
  return { vim.fn.expand('%:p'), vim.fn.line('.') }
end

local function clean()
  notices = {}
  vim.fn.setqflist({}, 'f')
  vim.cmd('silent! only | silent! pclose | enew!')
end

local tests = {}

function tests.search_fills_the_quickfix_list_and_enter_jumps_to_the_line()
  vim.cmd('MemorySearch systemd timers')
  wait(function()
    return #quickfix().items > 0
  end)
  equal(quickfix().title, 'memory: systemd timers')
  equal(vim.bo.buftype, 'quickfix')
  matches(quickfix().items[1].text, '^[01]%.%d%d ')
  vim.cmd('cfirst')
  equal(here(), { notes .. '/memory/a long name.md', 41 })
end

function tests.workspace_that_the_daemon_serves_since_a_reload_is_found()
  local ask = rpc.request
  rpc.close() -- so that the folders are asked for, and the answer is the one from before
  rpc.request = function(method, params, callback)
    if method == 'status' then
      callback(nil, { workspaces = {} })
    else
      ask(method, params, callback)
    end
  end
  local found
  memoryd.search('systemd timers', {}, function(_, _, items)
    found = items
  end)
  wait(function()
    return found
  end)
  rpc.request, found = ask, nil
  memoryd.search('systemd timers', {}, function(_, _, items)
    found = items
  end)
  wait(function()
    return found
  end)
  equal(found[1].filename, notes .. '/memory/a long name.md')
end

function tests.p_in_the_quickfix_window_previews_the_hit()
  vim.cmd('MemorySearch systemd timers')
  wait(function()
    return vim.bo.buftype == 'quickfix'
  end)
  vim.cmd('normal p')
  vim.cmd('wincmd P')
  equal(here(), { notes .. '/memory/a long name.md', 41 })
  vim.cmd('pclose')
end

function tests.bang_lets_choose_and_jumps()
  vim.ui.select = function(items, options, choice)
    matches(options.format_item(items[1]), 'a long name.md:41')
    choice(items[1])
  end
  vim.cmd('MemorySearch! systemd timers')
  wait(function()
    return vim.fn.expand('%:t') == 'a long name.md'
  end)
  equal(here(), { notes .. '/memory/a long name.md', 41 })
  equal(#quickfix().items, 0)
end

function tests.selection_and_lines_are_searched_for()
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'xx systemd timers yy' })
  vim.cmd('normal! 0wv2ey')
  vim.cmd("'<,'>MemorySearch")
  wait(function()
    return #quickfix().items > 0
  end)
  equal(quickfix().title, 'memory: systemd timers')
end

function tests.without_words_the_word_under_the_cursor_is_offered()
  vim.ui.input = function(options, answer)
    equal(options.default, 'harbour')
    answer('harbour office')
  end
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'harbour' })
  vim.cmd('MemorySearch')
  wait(function()
    return #quickfix().items > 0
  end)
  equal(quickfix().title, 'memory: harbour office')
end

function tests.empty_answer_says_why()
  memoryd.setup({ min_score = 1 })
  vim.cmd('MemorySearch zzzz')
  wait(function()
    return #notices > 0
  end)
  require('memoryd.config').values.min_score = nil
  matches(notices[1], 'Nothing found: ')
  equal(#quickfix().items, 0)
end

function tests.refused_request_says_why_and_what_to_do()
  local problem
  memoryd.search('x', { limt = 3 }, function(found)
    problem = found
  end)
  wait(function()
    return problem
  end)
  matches(problem.message, "did you mean 'limit'")
  equal(problem.code, 'invalid_params')
end

function tests.requests_side_by_side_share_one_connection_and_get_their_own_answers()
  rpc.close()
  local got, count, before = {}, 0, rpc.connections()
  for number = 1, 20 do
    memoryd.search('note ' .. number, { limit = number }, function(_, answer)
      got[number] = answer.query
      count = count + 1
    end)
  end
  wait(function()
    return count == 20
  end)
  for number = 1, 20 do
    equal(got[number], 'note ' .. number)
  end
  equal(rpc.connections(), before + 1)
end

function tests.answer_larger_than_one_read_is_put_together()
  local got
  rpc.request('get', { path = 'memory/large.md' }, function(problem, document)
    got = problem or document
  end)
  wait(function()
    return got
  end)
  equal(#got.text, 8000 * #'A lighthouse in the fog.\n\n' - 1)
end

function tests.status_says_how_it_is()
  local output
  vim.api.nvim_echo = function(chunks)
    output = chunks[1][1]
  end
  vim.cmd('MemoryStatus')
  wait(function()
    return output
  end)
  matches(output, '^memoryd %S+: ok\n')
  matches(output, vim.pesc(notes))
end

function tests.unknown_setting_is_refused()
  local understood, problem = pcall(memoryd.setup, { limits = 3 })
  equal(understood, false)
  matches(problem, 'no setting "limits"')
end

local absent = {}

function absent.no_daemon_is_told_with_the_remedy()
  vim.cmd('MemorySearch anything')
  wait(function()
    return #notices > 0
  end)
  matches(notices[1], 'No memoryd daemon is listening')
  matches(notices[1], "→ Start it with 'memoryd run'")
end

function absent.health_check_says_so()
  vim.cmd('checkhealth memoryd')
  local report = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  matches(report, 'ERROR')
  matches(report, 'No memoryd daemon is listening')
end

function tests.health_check_finds_the_daemon()
  vim.cmd('checkhealth memoryd')
  local report = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  matches(report, 'memoryd %S+: ok')
  assert(not report:match('ERROR'), report)
end

local failed = 0
for name, test in pairs(vim.env.EXPECT == 'daemon' and tests or absent) do
  clean()
  local select, input, echo = vim.ui.select, vim.ui.input, vim.api.nvim_echo
  local passed, why = xpcall(test, debug.traceback)
  vim.ui.select, vim.ui.input, vim.api.nvim_echo = select, input, echo
  io.stdout:write((passed and 'ok   ' or 'FAIL ') .. name .. '\n' .. (passed and '' or why .. '\n'))
  failed = failed + (passed and 0 or 1)
end
rpc.close()
vim.cmd(failed == 0 and 'qall!' or 'cquit')
