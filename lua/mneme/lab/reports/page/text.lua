-- text.lua -- how each kind of block looks as Markdown and as LaTeX, for a repository or a paper's appendix; blocks.lua writes them.  Figures are
-- files of their own, at the paths that the caller gives.
local blocks = require "mneme.lab.reports.page.blocks"
local latex = require "mneme.insight.figures.latex"
local mathml = require "mneme.lab.reports.page.mathml"
local terminal = require "mneme.base.terminal"

local text_page = {}

local function plain(v) return type(v) == "table" and tostring(v[1]) or tostring(v) end

-- ---- Markdown ----

local markdown = { bold = { "**", "**" } }
local function md(s) return blocks.inline(markdown, s) end

-- < would begin HTML; what is no link to a page or place, and no definition of one, may not be read as such.
function markdown.text(s) return (s:gsub("<", "&lt;"):gsub("%]%(", "\\](" ):gsub("(\n%s*)(%[[^%]]*%]:)", "%1\\%2")) end
-- Pipes and line ends would end a field.
function markdown.name(s) return (tostring(s):gsub("[\\|`$*%[%]]", "\\%0"):gsub("\r?\n", " "):gsub("<", "&lt;")) end
function markdown.typed(s) return "`" .. s .. "`" end
function markdown.equation(s, block) return block and "\n$$" .. s .. "$$\n" or "$" .. markdown.text(s) .. "$" end
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
  return ('\n<a id="%s"></a>![%s](%s)\n\n%s. %s\n'):format(b.id, title:gsub("[%[%]]", ""), path(b, "svg"), title, md(b.fig.note or ""))
end

-- ---- LaTeX ----

local tex = { text = latex.escape, bold = { "\\textbf{", "}" } }
local function tx(s) return blocks.inline(tex, s) end

-- An address in which TeX replaces nothing: other bytes than those of addresses are written as %XX.
local function address_of(s)
  return (s:gsub("[^%w%-._~:/?#@!&'*+,;=%%]", function(c) return ("%%%02X"):format(c:byte()) end):gsub("[%%#&]", "\\%0"))
end

function tex.typed(s) return "\\texttt{" .. latex.escape(s) .. "}" end
function tex.equation(s, block) return mathml.known(s) and (block and "\n\\[" .. s .. "\\]\n" or "$" .. s .. "$") or nil end

function tex.link(address, inner, bare)
  local place = address:match "^#(.*)"
  if place then return ("\\hyperref[%s]{%s}"):format(place, inner) end
  return ("\\href{%s}{%s}"):format(address_of(address), bare and "\\texttt{" .. inner .. "}" or inner)
end

-- Text as it is; letters that the font of verbatim lacks are ?.
local function as_typed(s)
  return "\\begin{verbatim}\n" .. s:gsub("\\end{verbatim}", "\\end {verbatim}"):gsub("[\194-\244][\128-\191]+", "?") .. "\n\\end{verbatim}"
end

local levels = { [2] = "section", [3] = "subsection" }
function tex.heading(b) return ("\n\\%s{%s}\\label{%s}\n"):format(levels[b.level], tx(b.text), b.id) end
function tex.list(items)                                 -- {}: [ would begin the option of \item
  return "\n\\begin{itemize}\n\\item {}" .. table.concat(items, "\n\\item {}") .. "\n\\end{itemize}\n"
end
local classes = { question = "\\emph{", lead = "\\textbf{", dim = "{\\small " }
function tex.paragraph(s, class) return "\n" .. (classes[class] and classes[class] .. s .. "}" or s) .. "\n" end
function tex.verbatim(s) return "\n{\\footnotesize" .. as_typed(s) .. "}\n" end
function tex.folded(summary, inner) return ("\n\\paragraph{%s}\n%s"):format(tx(summary), inner) end

function tex.code(b)
  local longest = 0
  for line in b.text:gmatch "[^\n]+" do longest = math.max(longest, #line) end
  return tex.folded(b.summary, ("{%s%s}\n"):format(longest <= 105 and "\\scriptsize" or "\\fontsize{5.4}{6.6}\\selectfont", as_typed(b.text)))
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
  local rows, n = {}, #b.head
  local function cells(row)
    local out = {}
    for i, v in ipairs(row) do out[i] = plain(v):gsub("[,=_/]%f[%w]", "%0" .. BREAK) end
    n = math.max(n, #row)
    return out
  end
  for r, row in ipairs(b.rows) do rows[r] = cells(row) end
  local head, columns = cells(b.head), {}
  if n == 0 then return "" end
  for i, share in ipairs(widths(head, rows, n)) do columns[i] = (">{\\raggedright\\arraybackslash}p{%.3f\\linewidth}"):format(share) end
  local inner = latex.table(head, rows, "@{}" .. table.concat(columns) .. "@{}"):gsub("^\\begin{tabular}", "\\begin{longtable}")
    :gsub("\\end{tabular}\n$", "\\end{longtable}\n"):gsub(BREAK, "\\allowbreak{}")
  return (b.caption and "\n" .. tx(b.caption) .. "\n" or "") .. "\n{\\footnotesize\\setlength{\\tabcolsep}{3pt}\n" .. inner .. "}\n"
end

function tex.figure(b, _, path)
  return ("\n\\begin{figure}[htbp]\\centering\n\\includegraphics[width=\\linewidth]{%s}\n\\caption{%s. %s}\\label{%s}\n\\end{figure}\n"):format(
    path(b, "pdf"), tx((b.fig.title or b.id):gsub("^%a+ %d+%. ", "")), tx(b.fig.note or ""), b.id)
end

-- ---- the whole ----

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
---@param opening table likewise, which comes first
---@param kind "md"|"tex"
---@param path fun(block: table, kind: string): string where the file of a figure is
function text_page.write(page, opening, kind, path)
  local writer = kind == "md" and markdown or tex
  local body = blocks.write(writer, opening.blocks, path) .. blocks.write(writer, page.blocks, path)
  if kind == "md" then return terminal.plain(("# %s\n%s"):format(md(page.title), body)) end          -- a pager shows it in a terminal
  return ("%s\\title{%s}\n\\date{}\n\\begin{document}\n\\maketitle\n%s\n\\end{document}\n"):format(preamble, tx(page.title), body)
end

return text_page
