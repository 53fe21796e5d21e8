-- shell_quote.lua -- quotes an argument for the shell, where it has to be.

---@param text string any bytes but zero
---@return string word
return function(text) return text:find "^[%w_./=:,+-]+$" and text or "'" .. text:gsub("'", "'\\''") .. "'" end
