-- text.lua -- writes a page as Markdown or as LaTeX, for a repository or a paper's appendix.  Figures are files of their own, at the paths
-- that the caller gives.
local blocks = require "mneme.lab.reports.page.blocks"
local latex = require "mneme.insight.figures.latex"
local mathml = require "mneme.lab.reports.page.mathml"
local terminal = require "mneme.base.terminal"

local text_page = {}

local function plain(v) return type(v) == "table" and tostring(v[1]) or tostring(v) end

-- What a card tells of its estimate.
local function estimate_of(card) return card.interval and ("%s (%s)"):format(card.estimate, card.interval) or card.estimate end

-- ---- Markdown ----

local markdown = {}

-- Pipes and line ends would end a field; < would begin HTML.
local function md_escape(s) return (tostring(s):gsub("[\\|`$*%[%]]", "\\%0"):gsub("\r?\n", " "):gsub("<", "&lt;")) end

local function md_field(v)
  local s = md_escape(plain(v))
  if type(v) == "table" then
    if v.bold then s = "**" .. s .. "**" end
    if v.href then s = ("[%s](%s)"):format(s, v.href) end
  end
  return s
end

-- Prose: links lead to pages and places, and names are text.
local function md_text(s)
  local kept = {}
  s = blocks.without_names(s:gsub("[\1\2]", ""), function(name)
    kept[#kept + 1] = md_escape(name)
    return ("\1%d\2"):format(#kept)
  end)
  s = s:gsub("<", "&lt;"):gsub("%]%(%s*()", function(at)
    return not s:find("^https?://", at) and not s:find("^#", at) and "\\](" or nil
  end)
  return ((" " .. s):gsub("(\n%s*)(%[[^%]]*%]:)", "%1\\%2"):gsub("\1(%d+)\2", function(i) return kept[tonumber(i)] end):sub(2))
end

function markdown.heading(b) return ('\n%s <a id="%s"></a>%s\n'):format(("#"):rep(b.level), b.id, md_text(b.text)) end

function markdown.paragraphs(b)
  local out = {}
  if type(b.text) == "table" then
    for i, item in ipairs(b.text) do out[i] = "- " .. md_text(item) end
    return "\n" .. table.concat(out, "\n") .. "\n"
  end
  for part in blocks.paragraphs(b.text) do
    part = (part:find "^%s*%$%$" or blocks.verbatim(part)) and part or md_text(part)
    if b.class == "warning" or b.class == "question" then part = "> " .. part:gsub("\n", "\n> ") end
    if b.class == "lead" then part = "**" .. part .. "**" end
    out[#out + 1] = "\n" .. part .. "\n"
  end
  return table.concat(out)
end

function markdown.table(b)
  local n, lines = #b.head, {}
  for _, row in ipairs(b.rows) do n = math.max(n, #row) end
  if n == 0 then return "" end
  local function add(row)
    local cells = {}
    for i = 1, n do cells[i] = md_field(row[i] or "") end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  add(b.head)
  lines[2] = "|" .. ("---|"):rep(n)
  for _, row in ipairs(b.rows) do add(row) end
  return (b.caption and "\n" .. md_text(b.caption) .. "\n" or "") .. "\n" .. table.concat(lines, "\n") .. "\n"
end

-- A fence longer than any in the text.
local function fenced(s)
  local longest = 2
  for run in s:gmatch "`+" do longest = math.max(longest, #run) end
  return ("`"):rep(longest + 1) .. "\n" .. s .. (s:find "\n$" and "" or "\n") .. ("`"):rep(longest + 1) .. "\n"
end

function markdown.code(b) return ("\n<details><summary>%s</summary>\n\n%s\n</details>\n"):format(md_text(b.summary), fenced(b.text)) end

function markdown.episode(b) return markdown.paragraphs { text = ("A file that plays it: `%s`."):format(b.command) } end

function markdown.figure(b, path)
  local title = md_text(b.fig.title or b.id)
  return ('\n<a id="%s"></a>![%s](%s)\n\n%s. %s\n'):format(b.id, title:gsub("[%[%]]", ""), path(b, "svg"), title, md_text(b.fig.note or ""))
end

function markdown.cards(b)
  local out = {}
  for i, c in ipairs(b.cards) do
    out[i] = ("- **%s** ([%s](#%s)): %s %s (%s)"):format(c.word, md_text(c.name), c.target, md_text(c.text), md_text(estimate_of(c)), md_text(c.about))
  end
  return "\n" .. table.concat(out, "\n") .. "\n"
end

-- ---- LaTeX ----

local tex = {}

-- An address in which TeX replaces nothing: other bytes than those of addresses are written as %XX.
local function tex_address(s)
  return (s:gsub("[^%w%-._~:/?#@!&'*+,;=%%]", function(c) return ("%%%02X"):format(c:byte()) end):gsub("[%%#&]", "\\%0"))
end

-- What Markdown has within a line, as LaTeX.
local function tex_text(s)
  local kept = {}
  local function keep(done)
    kept[#kept + 1] = done
    return ("\1%d\2"):format(#kept)
  end
  s = blocks.without_names(s:gsub("[\1\2]", ""), function(name) return keep(latex.escape(name)) end)
  s = s:gsub("`([^`\n]+)`", function(code) return keep("\\texttt{" .. latex.escape(code) .. "}") end)
  s = s:gsub("%$([^%s$][^$\n]*)%$", function(equation) return mathml.known(equation) and keep("$" .. equation .. "$") or nil end)
  s = s:gsub("%[([^%[%]]+)%]%(([^%s()]+)%)", function(name, address)
    local inner, place = latex.escape(name), address:match "^#([%w_-]+)$"
    if not place and not address:find "^https?://" then return nil end
    return keep(place and ("\\hyperref[%s]{%s}"):format(place, inner) or ("\\href{%s}{%s}"):format(tex_address(address), inner))
  end)
  s = s:gsub("https?://[%w%-._~/?=&%%#:+]+[%w/]", function(address)
    return keep("\\href{" .. tex_address(address) .. "}{\\texttt{" .. latex.escape(address) .. "}}")
  end)
  s = s:gsub("%*%*(%S[^*]-)%*%*", function(bold) return keep("\\textbf{" .. latex.escape(bold) .. "}") end)
  s = s:gsub("[^\1\2]+", function(part) return part:find "^%d+$" and part or latex.escape(part) end)
  for _ = 1, 2 do s = s:gsub("\1(%d+)\2", function(i) return kept[tonumber(i)] end) end
  return s
end

-- Text as it is; letters that the font of verbatim lacks are ?.
local function tex_verbatim(s)
  return "\\begin{verbatim}\n" .. s:gsub("\\end{verbatim}", "\\end {verbatim}"):gsub("[\194-\244][\128-\191]+", "?") .. "\n\\end{verbatim}"
end

local levels = { [2] = "section", [3] = "subsection" }
function tex.heading(b) return ("\n\\%s{%s}\\label{%s}\n"):format(levels[b.level], tex_text(b.text), b.id) end

function tex.paragraphs(b)
  local out = {}
  if type(b.text) == "table" then
    for i, item in ipairs(b.text) do out[i] = "\\item {}" .. tex_text(item) end          -- [ would begin its option
    return "\n\\begin{itemize}\n" .. table.concat(out, "\n") .. "\n\\end{itemize}\n"
  end
  for part in blocks.paragraphs(b.text) do
    local equation, verbatim = part:match "^%s*%$%$(.-)%$%$%s*$", blocks.verbatim(part)
    if verbatim then out[#out + 1] = "\n{\\footnotesize" .. tex_verbatim(verbatim) .. "}\n"
    elseif equation and mathml.known(equation) then out[#out + 1] = "\n\\[" .. equation .. "\\]\n"
    else
      local done = tex_text(part)
      out[#out + 1] = "\n" .. (b.class == "question" and "\\emph{%s}" or b.class == "lead" and "\\textbf{%s}" or b.class == "dim" and "{\\small %s}"
        or "%s"):gsub("%%s", function() return done end) .. "\n"
    end
  end
  return table.concat(out)
end

local LINE = 112                   -- characters of \footnotesize in a line, about
local BREAK = "\226\128\139"       -- zero-width space: a line may end there

-- Shares of the line for the columns of a table: each as wide as its widest cell where all fit, else at least as wide as its longest
-- word (of at most 30 letters), and the rest of the line in proportion to what a column lacks.
local function widths(head, rows, n)
  local wants, needs, wanted, needed, room = {}, {}, 0, 0, LINE - 2 * (n - 1)
  for i = 1, n do
    wants[i], needs[i] = 2, 2
    for r = 0, #rows do
      local text = (rows[r] or head)[i] or ""
      wants[i] = math.max(wants[i], #text:gsub(BREAK, "") + 1)
      for word in text:gsub(BREAK, " "):gmatch "%S+" do needs[i] = math.max(needs[i], math.min(#word + 1, 30)) end
    end
    wanted, needed = wanted + wants[i], needed + needs[i]
  end
  local out, grows = {}, math.max(0, room - needed) / math.max(1, wanted - needed)
  for i = 1, n do
    local letters = wanted <= room and wants[i] or needs[i] + (wants[i] - needs[i]) * grows
    out[i] = letters / math.max(LINE, needed + 2 * (n - 1))
  end
  return out
end

function tex.table(b)
  local rows, head, n = {}, {}, #b.head
  local function cell(v) return (plain(v):gsub("[,=_/]%f[%w]", "%0" .. BREAK)) end
  for r, row in ipairs(b.rows) do
    rows[r], n = {}, math.max(n, #row)
    for i, v in ipairs(row) do rows[r][i] = cell(v) end
  end
  for i, v in ipairs(b.head) do head[i] = cell(v) end
  if n == 0 then return "" end
  local columns = {}
  for i, share in ipairs(widths(head, rows, n)) do columns[i] = (">{\\raggedright\\arraybackslash}p{%.3f\\linewidth}"):format(share) end
  local inner = latex.table(head, rows, "@{}" .. table.concat(columns) .. "@{}"):gsub("^\\begin{tabular}", "\\begin{longtable}")
    :gsub("\\end{tabular}\n$", "\\end{longtable}\n"):gsub(BREAK, "\\allowbreak{}")
  return (b.caption and "\n" .. tex_text(b.caption) .. "\n" or "") .. "\n{\\footnotesize\\setlength{\\tabcolsep}{3pt}\n" .. inner .. "}\n"
end

function tex.code(b)
  local longest = 0
  for line in b.text:gmatch "[^\n]+" do longest = math.max(longest, #line) end
  return ("\n\\paragraph{%s}\n{%s%s}\n"):format(tex_text(b.summary), longest <= 105 and "\\scriptsize" or "\\fontsize{5.4}{6.6}\\selectfont",
    tex_verbatim(b.text))
end

function tex.episode(b) return tex.paragraphs { text = ("A file that plays it: `%s`."):format(b.command) } end

function tex.figure(b, path)
  return ("\n\\begin{figure}[htbp]\\centering\n\\includegraphics[width=\\linewidth]{%s}\n\\caption{%s. %s}\\label{%s}\n\\end{figure}\n"):format(
    path(b, "pdf"), tex_text(((b.fig.title or b.id):gsub("^%a+ %d+%. ", ""))), tex_text(b.fig.note or ""), b.id)
end

function tex.cards(b)
  local out = {}
  for i, c in ipairs(b.cards) do
    out[i] = ("\\item \\textbf{%s} (%s): %s %s (%s)"):format(tex_text(c.word), tex_text(c.name), tex_text(c.text), tex_text(estimate_of(c)),
      tex_text(c.about))
  end
  return "\n\\begin{itemize}\n" .. table.concat(out, "\n") .. "\n\\end{itemize}\n"
end

-- ---- the whole ----

local function write_all(writers, list, path)
  local out = {}
  for i, b in ipairs(list) do
    if b.kind ~= "fold" then out[i] = writers[b.kind](b, path)
    elseif writers == tex then out[i] = ("\n\\paragraph{%s}\n"):format(tex_text(b.summary)) .. write_all(writers, b.blocks, path)
    else out[i] = ("\n<details><summary>%s</summary>\n%s\n</details>\n"):format(md_text(b.summary), write_all(writers, b.blocks, path)) end
  end
  return table.concat(out)
end

local preamble = [[
\documentclass[11pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage[margin=2.3cm]{geometry}
\usepackage{amsmath,amssymb,array,booktabs,graphicx,longtable}
\usepackage[hidelinks]{hyperref}
\sloppy
]]

---A page as Markdown or as a LaTeX document.
---@param page table of blocks.lua
---@param opening table likewise, which comes first
---@param kind "md"|"tex"
---@param path fun(block: table, kind: string): string where the file of a figure is
---@return string
function text_page.write(page, opening, kind, path)
  local writers = kind == "md" and markdown or tex
  local body = write_all(writers, opening.blocks, path) .. write_all(writers, page.blocks, path)
  if kind == "md" then return terminal.plain(("# %s\n%s"):format(md_text(page.title), body)) end          -- a pager shows it in a terminal
  return ("%s\\title{%s}\n\\date{}\n\\begin{document}\n\\maketitle\n%s\n\\end{document}\n"):format(preamble, tex_text(page.title), body)
end

return text_page
