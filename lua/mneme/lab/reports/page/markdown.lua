-- markdown.lua -- how each kind of block looks as Markdown, from which pandoc makes LaTeX and PDF; blocks.lua writes them.  Figures are files of
-- their own, at the paths that the caller gives.
local blocks = require "mneme.lab.reports.page.blocks"
local terminal = require "mneme.base.terminal"

local function plain(v) return type(v) == "table" and tostring(v[1]) or tostring(v) end

local markdown = { bold = { "**", "**" } }
local function md(s) return blocks.inline(markdown, s) end

-- Signs stand for themselves: < would begin HTML, \ a command of LaTeX, *, ~, ^ and an _ at the edge of a word another font.
local function literal(s, signs)
  local function escaped(run) return (run:gsub("_", "\\_")) end
  return (s:gsub("<", "&lt;"):gsub("[" .. signs .. "\\*~^]", "\\%0"):gsub("%f[%w_]_+", escaped):gsub("%w_+%f[^%w_]", escaped))
end
-- What is no link to a page or place, and no definition of one, may not be read as such.
function markdown.text(s) return (literal(s, ""):gsub("%]%(", "\\](" ):gsub("(\n%s*)(%[[^%]]*%]:)", "%1\\%2")) end
-- Pipes and line ends would end a field.
function markdown.name(s) return literal(tostring(s):gsub("\r?\n", " "), "|`$%[%]") end
function markdown.typed(s) return "`" .. s .. "`" end
function markdown.equation(s, block) return block and "\n$$" .. s .. "$$\n" or "$" .. s:gsub("<", "&lt;") .. "$" end
function markdown.link(address, inner, bare) return bare and address or ("[%s](%s)"):format(inner, address) end

function markdown.heading(b) return ('\n%s <a id="%s"></a>%s\n'):format(("#"):rep(b.level), b.id, md(b.text)) end
function markdown.list(items) return "\n- " .. table.concat(items, "\n- ") .. "\n" end
function markdown.verbatim(s) return "\n    " .. s:gsub("\n", "\n    ") .. "\n" end
function markdown.folded(summary, inner) return ("\n<details><summary>%s</summary>\n%s\n</details>\n"):format(md(summary), inner) end

function markdown.paragraph(s, class)
  if class == "warning" or class == "question" then s = "> " .. s:gsub("\n", "\n> ") end
  return "\n" .. (class == "lead" and "**" .. s .. "**" or s) .. "\n"
end

function markdown.code(b)
  local fence = "```"                                    -- longer than any in the text
  for run in b.text:gmatch "`+" do fence = #run < #fence and fence or run .. "`" end
  return markdown.folded(b.summary, ("\n%s\n%s%s%s\n"):format(fence, b.text, b.text:find "\n$" and "" or "\n", fence))
end

function markdown.table(b)
  local n, lines = #b.head, {}
  for _, row in ipairs(b.rows) do n = math.max(n, #row) end
  if n == 0 then return "" end
  local function add(row)
    local cells = {}
    for i = 1, n do
      local v = row[i] or ""
      local s, about = markdown.name(plain(v)), type(v) == "table" and v or {}
      if about.bold then s = "**" .. s .. "**" end
      cells[i] = about.href and ("[%s](%s)"):format(s, about.href) or s
    end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  add(b.head)
  lines[2] = "|" .. ("---|"):rep(n)
  for _, row in ipairs(b.rows) do add(row) end
  return (b.caption and "\n" .. md(b.caption) .. "\n" or "") .. "\n" .. table.concat(lines, "\n") .. "\n"
end

function markdown.figure(b, _, path)
  local title = md(b.fig.title or b.id)
  return ('\n<a id="%s"></a>![%s](%s)\n\n%s. %s\n'):format(b.id, title:gsub("[%[%]]", ""), path(b), title, md(b.fig.note or ""))
end

---A page as Markdown.
---@param opening table likewise, which comes first
---@param path fun(block: table): string where the file of a figure is
function markdown.write(page, opening, path)
  local body = blocks.write(markdown, opening.blocks, path) .. blocks.write(markdown, page.blocks, path)
  return terminal.plain(("# %s\n%s"):format(md(page.title), body))          -- a pager shows it in a terminal
end

return { write = markdown.write }
