-- word_lists.lua -- reads lists of words and what each means: a text file below lua/mneme.  [kind] begins a part of it; a meaning is a line or several,
-- and below it, set in, are its words; a line that begins with "# " is a comment.
local library = debug.getinfo(1, "S").source:match "^@(.*)base/word_lists%.lua$" or "./lua/mneme/"

---@param file string "base/names_elsewhere.txt"
---@return { [1]: string, [2]: string, [3]: string }[] rows { kind, words with blanks between, meaning }
return function(file)
  local rows, kind, row = {}, nil, nil
  for line in io.lines(library .. file) do
    local begins, words = line:match "^%[(.+)%]$", line:match "^    (.*)"
    if begins then kind = begins
    elseif words then row[2] = row[2] .. words .. " "
    elseif line ~= "" and not line:find "^# " then
      if row and row[2] == "" then row[3] = row[3] .. " " .. line
      else
        row = { kind, "", line }
        rows[#rows + 1] = row
      end
    end
  end
  return rows
end
