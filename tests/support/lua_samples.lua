-- lua_samples.lua -- the Lua that users are shown (experiments, scenes, the scripts of docs/, the blocks of code in every page), and
-- what can be said of it without running it: does it use names that are not there?
local files = require "mneme.base.files"
local root = require("mneme.base.registry").root

local samples = {}

-- f(path) for every file below a folder.
local function each(path, f)
  if not files.is_folder(root .. path) then return f(path) end
  for _, name in ipairs(files.list(root .. path)) do each(path .. "/" .. name, f) end
end

---All of them.  A block of a page that requires nothing goes on from what the page says before it: `fragment`.
---@return { name: string, text: string, fragment: boolean? }[] name: "docs/faq.md:12", or the path of a file
---@return table<string, boolean> ops that a page has its reader write: engine/ops/NAME.c
function samples.list()
  local list, written = {}, {}
  for _, place in ipairs { "experiments", "scenes", "docs", "README.md", "CONTRIBUTING.md" } do
    each(place, function(path)
      local text = (path:find "%.lua$" or path:find "%.md$") and files.read(root .. path)
      if path:find "%.lua$" then list[#list + 1] = { name = path, text = text } return end
      for at, block in ("\n" .. (text or "")):gmatch "()\n```lua\n(.-)\n```" do
        local _, line = text:sub(1, at):gsub("\n", "")
        list[#list + 1] = { name = path .. ":" .. line + 2, text = block, fragment = not block:find "require" }
      end
      for op in (text or ""):gmatch "`engine/ops/([%w_]+)%.c`:?\n```c" do written[op] = true end
    end)
  end
  return list, written
end

-- Code without what stands in comments and in strings, except "mneme".
local function bare(text)
  local out, at = {}, 1
  while at <= #text do
    local stop
    local long = text:match("^%-%-%[(=*)%[", at) or text:match("^%[(=*)%[", at)
    if long then stop = select(2, text:find("]" .. long .. "]", at, true))
    elseif text:find("^%-%-", at) then stop = (text:find("\n", at, true) or #text + 1) - 1
    elseif text:find("^[\"']", at) then
      local quote = text:sub(at, at)
      stop = at + 1
      while stop <= #text and text:sub(stop, stop) ~= quote do stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1) end
    end
    local mneme = stop and text:find('^.mneme.', at) and stop == at + 6
    out[#out + 1] = mneme and '"mneme"' or stop and '""' or text:sub(at, at)
    at = (stop or at) + 1
  end
  return table.concat(out)
end

---The names in a piece of Lua that are not there: mn.NAME and what is below it, methods of what functions of mn return, and methods
---that nothing has.
---@param text string
---@param there { kind: function, class_of: function, has: function } kind("mn.nn"): "table" of names, "value" or nil; class_of("mn.env"):
---  the class that it returns, or nil; has(class, method), where class may be nil
---@return string[]
function samples.unknown(text, there)
  local code, wrong, alias, class = bare(text), {}, { mn = "mn" }, {}
  for names, values in code:gmatch "local%s+([%w_,%s]-)%s*=%s*([^\n]+)" do           -- local nn, ops = mn.nn, mn.ops
    local paths, i = {}, 0
    for path in (values .. ","):gmatch "%s*([^,]*)," do paths[#paths + 1] = path:gsub('^require%s*%(?"mneme"%)?', "mn") end
    for name in names:gmatch "[%w_]+" do
      i = i + 1
      alias[name] = (paths[i] or ""):match "^(mn[%w_.]*)%s*$" or alias[name]
      local made = i == 1 and paths[1]:match "^(mn[%w_.]*)%s*[({\"]"
      local of = made and there.class_of(made)
      class[name] = (class[name] == nil or class[name] == of) and of or false          -- false: of several classes
    end
  end
  for name, rest in code:gmatch "%f[%w_.:]([%a_][%w_]*)(%.[%w_.]+)" do
    local path = alias[name]
    for key in rest:gmatch "[%w_]+" do
      if not path or there.kind(path) ~= "table" then break end
      path = path .. "." .. key
      if not there.kind(path) then wrong[#wrong + 1] = path end
    end
  end
  for name, method in code:gmatch "([%w_]*):([%a_][%w_]*)%s*[({\"]" do
    if not there.has(class[name] or nil, method) then wrong[#wrong + 1] = ("%s:%s"):format(class[name] or name, method) end
  end
  return wrong
end

return samples
