-- torch_names.lua -- PyTorch's names that are something else here, by their kind (functions, nn, init): { what to write, why }, of torch_names.txt.
local names = {}
for _, row in ipairs(require "mneme.base.word_lists" "tensor/torch_names.txt") do
  local write, why = row[3]:match "^(.-)%s*%-%- (.*)$"
  names[row[1]] = names[row[1]] or {}
  for word in row[2]:gmatch "%S+" do names[row[1]][word] = { write ~= "" and (write or row[3]) or nil, why } end
end

return names
