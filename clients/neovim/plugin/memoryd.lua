-- The commands. What they do is loaded when one is used.
if vim.g.loaded_memoryd then
  return
end
vim.g.loaded_memoryd = true

vim.api.nvim_create_user_command('MemorySearch', function(command)
  require('memoryd').command(command)
end, { nargs = '*', bang = true, range = true, desc = 'Search the memory; with ! choose from a list' })

vim.api.nvim_create_user_command('MemoryStatus', function()
  require('memoryd').status()
end, { desc = 'Tell how the memory daemon is' })
