-- export.lua -- writes a figure to a file whose extension gives the format.  If a program is missing, the error
-- names its Debian package.
local data = require "mneme.figures.data"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local gnuplot = require "mneme.figures.gnuplot"
local word = require "mneme.base.shell_word"
local svg = require "mneme.figures.svg"

local export = {}
local ZOOM = 2                 -- pixels of a PNG for one of the drawing

-- Draws by rsvg-convert, which has fonts and paper sizes: from a file next to the result, renamed when it is complete.
local function convert(fig, path, kind)
  if os.execute "command -v rsvg-convert >/dev/null 2>&1" ~= 0 then
    errors.fail(path .. ": rsvg-convert is not installed", "Debian: apt-get install librsvg2-bin; or a name that ends in .svg")
  end
  local from, to = path .. ".new.svg", path .. ".new"
  files.write(from, { svg.draw(fig, { alone = true, theme = "light" }) })
  local status = os.execute(("rsvg-convert --format=%s --zoom=%d --output=%s %s"):format(kind, kind == "png" and ZOOM or 1, word(to), word(from)))
  files.remove(from)
  if status ~= 0 then errors.fail(path .. ": rsvg-convert failed") end
  files.rename(to, path)
end

local writers = {
  svg = function(fig, path) files.write(path, { svg.draw(fig, { alone = true, theme = "light" }) }) end,   -- no variables: not all programs know them
  csv = function(fig, path) files.write(path, { data.csv(fig) }) end,
  gp = function(fig, path)
    files.write(path, { gnuplot.script(fig, (path:gsub("%.%w+$", ""))) })
    files.write((path:gsub("%.%w+$", ".csv")), { data.csv(fig) })
  end,
  png = function(fig, path) convert(fig, path, "png") end,
  pdf = function(fig, path) convert(fig, path, "pdf") end,
}

---Refuse a name by whose end no kind of file is meant, before there is a figure.
---@param path string
---@return string kind
function export.kind(path)
  if type(path) ~= "string" then errors.usage(("the path of a figure is a %s, expected a text"):format(type(path))) end
  local kind = path:lower():match "%.(%w+)$"
  if not writers[kind] then errors.usage(path .. ": expected a name ending in .svg, .png, .pdf, .csv or .gp") end
  return kind
end

---Write a figure into a file.
---@param fig table see mneme.figures.model
---@param path string ends in .svg, .png, .pdf, .csv or .gp (a script for gnuplot; its data next to it, in .csv)
function export.write(fig, path) writers[export.kind(path)](fig, path) end

return export
