-- latex.lua -- texts and tables as LaTeX, with booktabs' lines.
local latex = {}

local special = { ["\\"] = "\\textbackslash{}", ["{"] = "\\{", ["}"] = "\\}", ["$"] = "\\$", ["&"] = "\\&", ["#"] = "\\#", ["%"] = "\\%", ["_"] = "\\_",
  ["^"] = "\\textasciicircum{}", ["~"] = "\\textasciitilde{}", ["<"] = "\\textless{}", [">"] = "\\textgreater{}", ["|"] = "\\textbar{}" }
-- Letters and signs that pdflatex does not know.
local signs = { ["–"] = "--", ["…"] = "\\dots{}", ["−"] = "$-$", ["≥"] = "$\\ge$", ["≤"] = "$\\le$", ["×"] = "$\\times$", ["·"] = "$\\cdot$", ["²"] = "$^2$",
  ["µ"] = "$\\mu$", ["μ"] = "$\\mu$", ["η"] = "$\\eta$", ["β"] = "$\\beta$", ["γ"] = "$\\gamma$", ["λ"] = "$\\lambda$", ["σ"] = "$\\sigma$",
  ["→"] = "$\\to$", ["±"] = "$\\pm$", ["≈"] = "$\\approx$", ["∞"] = "$\\infty$" }

---A text in which LaTeX replaces nothing.
function latex.escape(s)
  return (tostring(s):gsub("[%z\1-\8\11\12\14-\31\127]", "?"):gsub("[\\{}$&#%%_^~<>|]", special)
    :gsub("[\194-\244][\128-\191]+", function(sign) return signs[sign] or sign end))
end

---A table.
---@param head string[] names of the columns
---@param columns string? how columns are set; default: the first to the left, others to the right
function latex.table(head, rows, columns)
  local n = #head
  for _, row in ipairs(rows) do n = math.max(n, #row) end
  local out = { ("\\begin{tabular}{%s}"):format(columns or "l" .. ("r"):rep(n - 1)), "\\toprule" }
  local function line(row)
    local cells = {}
    for i = 1, n do cells[i] = latex.escape(row[i] or "") end
    if cells[1]:find "^%s*[%[*]" then cells[1] = "{}" .. cells[1] end          -- \\ would take it for its option
    return table.concat(cells, " & ") .. " \\\\"
  end
  if #head > 0 then
    out[#out + 1] = line(head)
    out[#out + 1] = "\\midrule"
  end
  for _, row in ipairs(rows) do out[#out + 1] = line(row) end
  out[#out + 1] = "\\bottomrule"
  out[#out + 1] = "\\end{tabular}"
  return table.concat(out, "\n") .. "\n"
end

return latex
