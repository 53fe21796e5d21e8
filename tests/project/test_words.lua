-- test_words.lua -- the words that docs/style.md retires are in no page, in no string of the program, and in nothing that it prints.
local t = require "tests.harness"
local lfs = require "lfs"
local shell = require "tests.support.shell"

local root = shell.root

-- ---- what is looked for ----

-- The block under "## Retired": { pattern, replacement }, a line each.
local function retired(style)
  local list = {}
  local block = style:match "\n## Retired\n.-\n```%a*\n(.-)\n```"
  for line in (block or ""):gmatch "[^\n]+" do
    local pattern, instead = line:match "^(.-)%s%s+(.*)$"
    list[#list + 1] = { pattern or line, instead or "?" }
  end
  return list
end

-- f(line, what was found, what to write instead) for each match in a text that begins in `line`.  Any space between two
-- words is one blank, also the end of a line.
local function each_match(text, line, list, f)
  local words, starts, at = {}, {}, 1
  for space, word in text:lower():gmatch "(%s*)(%S*)" do
    line = line + select(2, space:gsub("\n", ""))
    words[#words + 1], starts[#starts + 1] = word, { at, line }
    at = at + #word + 1
  end
  local flat = table.concat(words, " ")
  for _, entry in ipairs(list) do
    local from = 1
    while true do
      local first, last = flat:find(entry[1], from)
      if not first then break end
      local found = 1
      while starts[found + 1] and starts[found + 1][1] <= first do found = found + 1 end
      f(starts[found][2], flat:sub(first, last), entry[2])
      from = last + 1
    end
  end
end

-- ---- what is read ----

-- A page without its code: { { line, text } }.
local function prose(page)
  local function blank(text) return (text:gsub("[^\n]", " ")) end
  page = ("\n" .. page):gsub("\n[ ]*```.-\n[ ]*```", blank):sub(2)
  return { { 1, (page:gsub("``[^`]+``", blank):gsub("`[^`]+`", blank)) } }
end

-- The strings of a source file, { line, text } each; those with only `glue` between them are one.
--   starts   the characters at which a string or a comment may begin
--   token    function(text, at) -> the last character of what begins there, and its text where it is a string
local function strings(text, starts, glue, token)
  local list, line, at, open = {}, 1, 1, 0           -- open: just behind the last string
  while true do
    local first = text:find(starts, at)
    if not first then return list end
    local last, found = token(text, first)
    line = line + select(2, text:sub(at, first - 1):gsub("\n", ""))
    if found and open > 0 and text:sub(open, first - 1):find(glue) then list[#list][2] = list[#list][2] .. found
    elseif found then list[#list + 1] = { line, found } end
    line = line + select(2, text:sub(first, last):gsub("\n", ""))
    at = last + 1
    if found then open = at end
  end
end

-- The last character of a string in quotes, and what it says.
local function quoted(text, at)
  local last, quote = at + 1, text:sub(at, at)
  while last <= #text and text:sub(last, last) ~= quote do last = last + (text:sub(last, last) == "\\" and 2 or 1) end
  return last, (text:sub(at + 1, last - 1):gsub("\\n", " "))
end

local function end_of(text, what, from) return select(2, text:find(what, from, true)) or #text end

local function lua_strings(text)
  return strings(text, "[\"'%-%[]", "^%s*%.%.%s*$", function(_, at)
    local comment = text:sub(at, at + 1) == "--"
    local equals = text:match("^%[(=*)%[", comment and at + 2 or at)
    if equals then
      local last = end_of(text, "]" .. equals .. "]", at)
      return last, not comment and text:sub(at, last) or nil
    elseif comment then return end_of(text, "\n", at)
    elseif text:find("^[\"']", at) then return quoted(text, at) end
    return at
  end)
end

local function c_strings(text)
  return strings(text, "[\"'/]", "^%s*$", function(_, at)
    local two = text:sub(at, at + 1)
    if two == "/*" then return end_of(text, "*/", at + 2)
    elseif two == "//" then return end_of(text, "\n", at)
    elseif two:sub(1, 1) == "/" then return at end
    local last, found = quoted(text, at)
    return last, two:sub(1, 1) == '"' and found or nil
  end)
end

local function read(path)
  local f = assert(io.open(root .. path, "rb"))
  local text = f:read "*a"
  f:close()
  return text
end

-- Files below a folder whose names match.
local function below(folder, ending, list)
  for name in lfs.dir(root .. folder) do
    local path = folder .. "/" .. name
    local mode = name:sub(1, 1) ~= "." and lfs.attributes(root .. path, "mode")
    if mode == "directory" then below(path, ending, list) elseif mode == "file" and name:find(ending) then list[#list + 1] = path end
  end
  return list
end

-- ---- the tests ----

local list = retired(read "docs/style.md")

local function found_in(texts)
  local found = {}
  for _, part in ipairs(texts) do
    each_match(part[2], part[1], list, function(line, what) found[#found + 1] = line .. ":" .. what end)
  end
  return table.concat(found, " ")
end

t.test("the matcher finds retired words, where they are, and only there", function()
  t.ok(#list >= 25, #list .. " patterns were read from docs/style.md")
  local word = "an" .. "ew"
  t.eq(found_in(prose("One.\n\nTwo " .. word .. " three.\n")), "3:" .. word)
  t.eq(found_in(prose("`" .. word .. "` and\n```sh\n" .. word .. "\n```\nrenewed, " .. word:upper() .. "s\n")), "", "code, and parts of other words")
  t.eq(found_in(prose "\n- It may go on\n  with the rest."), "2:go on with", "over the end of a line")
  local lua = ("-- %s\nlocal x = 'a\\' %s' --[[ %s\n%s ]] .. [[\n%s]] -- \"%s\"\nlocal y = a[b[1]] - 1 .. \"%s go on \"\n  .. \"with\""):gsub("%%s", word)
  t.eq(found_in(lua_strings(lua)), (("2:%s 4:%s 5:%s 5:go on with"):gsub("%%s", word)))
  local c = ('/* %s */ f("a \\" %s", \'"\', g / 2); // "%s"\nh("go on "\n  "with");'):gsub("%%s", word)
  t.eq(found_in(c_strings(c)), "1:" .. word .. " 2:go on with")
end)

-- Complain about all findings of these texts: { name, { { line, text } ... } }.
local function none(texts)
  local findings = {}
  for _, entry in ipairs(texts) do
    for _, part in ipairs(entry[2]) do
      each_match(part[2], part[1], list, function(line, what, instead)
        findings[#findings + 1] = ("%s:%d: '%s': %s"):format(entry[1], line, what, instead)
      end)
    end
  end
  t.ok(#findings == 0, #findings .. " retired words; docs/style.md has others:\n  " .. table.concat(findings, "\n  "))
end

local function texts_of(paths, strip)
  local texts = {}
  for i, path in ipairs(paths) do texts[i] = { path, strip(read(path)) } end
  t.ok(#texts > 0, "files to look at")
  return texts
end

t.test("pages", function()
  local pages = { "README.md", "CONTRIBUTING.md" }
  for _, path in ipairs(below("experiments", "%.md$", below("docs", "%.md$", {}))) do
    if path ~= "docs/style.md" then pages[#pages + 1] = path end
  end
  none(texts_of(pages, prose))
end)

t.test("lists of words", function()
  local function answers(text) return { { 1, (text:gsub("[^\n]+", function(line) return line:find "^    " and "" or nil end)) } } end
  none(texts_of({ "lua/mneme/base/names_elsewhere.txt", "lua/mneme/commands/words_of_messages.txt", "lua/mneme/models/core_setting_docs.txt",
    "lua/mneme/tensor/torch_names.txt" }, answers))
end)

t.test("strings of Lua files", function()
  none(texts_of(below("experiments", "%.lua$", below("scenes", "%.lua$", below("lua", "%.lua$", {}))), lua_strings))
end)

t.test("strings of C files", function()
  none(texts_of(below("gpu", "%.c[up]?[hp]?$", below("scenes", "%.[ch]$", below("engine", "%.[ch]$", {}))), c_strings))
end)

t.test("what the program prints", function()
  local catalogue, folder, texts = require "mneme.base.catalogue", shell.folder(), {}
  local function add(line)
    local said, status = shell.mneme(folder, line)
    t.eq(status, 0, line .. "\n" .. said)
    texts[#texts + 1] = { "mneme " .. line, { { 1, said } } }
  end
  add "help"
  for name in ("\n" .. shell.mneme(folder, "complete ''")):gmatch "\n(%l+)" do add("help " .. name) end
  for _, kind in ipairs(catalogue.kinds) do add("list " .. kind) end
  add "run tmaze --help"
  os.execute("rm -rf '" .. folder .. "'")
  none(texts)
end)
