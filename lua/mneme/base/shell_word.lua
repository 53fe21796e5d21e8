-- shell_word.lua -- quotes an argument for the shell.

---@param text string any bytes but zero
---@return string word
return function(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
