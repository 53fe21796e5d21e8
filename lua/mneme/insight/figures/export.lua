-- export.lua -- writes a figure to a file whose extension gives the format.  If a program is missing, the error
-- names its Debian package.
local figure_csv = require "mneme.insight.figures.figure_csv"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local svg = require "mneme.insight.figures.svg"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local export = {}
local ZOOM = 2                 -- pixels of a PNG for one of the drawing

local function drawing(fig, o) return svg.draw(fig, tables.merged({ alone = true, theme = "light" }, o)) end

local function can_convert() return os.execute "command -v rsvg-convert >/dev/null 2>&1" == 0 end

-- Draws by rsvg-convert, which has fonts and paper sizes.  It reads and writes streams: no name of ours is an option of it.
local function convert(fig, path, kind, o)
  if not can_convert() then
    errors.fail(path .. ": rsvg-convert is not installed", "Debian: apt-get install librsvg2-bin; or a name that ends in .svg")
  end
  local drawn = files.temporary(function(from)
    files.write(from, { drawing(fig, o) })
    return files.output(("rsvg-convert --format=%s --zoom=%d < %s"):format(kind, kind == "png" and ZOOM or 1, terminal.shell_quote(from)))
  end, path)
  if not drawn:find(kind == "png" and "IEND....$" or "%%%%EOF%s*$") then errors.fail(path .. ": rsvg-convert failed") end
  files.write(path, { drawn })
end

local writers = {
  svg = function(fig, path, o) files.write(path, { drawing(fig, o) }) end,
  csv = function(fig, path) files.write(path, { figure_csv.csv(fig) }) end,
  png = function(fig, path, o) convert(fig, path, "png", o) end,
  pdf = function(fig, path, o) convert(fig, path, "pdf", o) end,
}

-- Pixels of a unit of length, at 96 to the inch.
local units = { px = 1, pt = 96 / 72, mm = 96 / 25.4, cm = 96 / 2.54, ["in"] = 96 }

---A width as drawings take it, from "3.3in", "84mm", "240pt" or pixels.
---@return number pixels
function export.width(s)
  local value, unit = tostring(s):match "^(%d+%.?%d*)%s*(%a*)$"
  local pixels = value and units[unit == "" and "px" or unit] and tonumber(value) * units[unit == "" and "px" or unit]
  if not pixels or pixels < svg.LEAST or pixels > svg.MOST then
    errors.usage(("width=%s, expected 40mm to 1000mm as in 84mm, 3.3in, 240pt or 600 (pixels)"):format(s))
  end
  return math.floor(pixels + 0.5)
end

---What a drawing may be given in the words of a command line: width=84mm font=FAMILY title=0 panels=1.
---@param o table { width = string, font = string, title = boolean, panels = boolean }, each or none
---@return table options of export.write
function export.options(o) return { width = o.width and export.width(o.width), font = o.font, title = o.title ~= false, panels = o.panels } end
export.words = { "width", "font", "title", "panels" }

---Refuse a name by whose end no kind of file is meant, before there is a figure.
---@param path string
---@return string kind
function export.kind(path)
  if type(path) ~= "string" then errors.usage(("the path of a figure is a %s, expected a text"):format(type(path))) end
  local kind = path:lower():match "%.(%w+)$"
  if not writers[kind] then errors.usage(path .. ": expected a name ending in .svg, .png, .pdf or .csv") end
  return kind
end

---Write a figure into a file.
---@param fig table see insight/figures/figure_format.lua
---@param path string ends in .svg, .png, .pdf or .csv
---@param o table? of drawings: { width = pixels of all of it, font = a family of letters, title = false: without title and note, theme = "light" | "dark",
---  panels = true or false: a panel for each line, default where lines are many }
function export.write(fig, path, o) writers[export.kind(path)](fig, path, svg.options(o or {})) end

---The kinds of files that a report draws each figure as: where rsvg-convert is missing, which is said, SVG and CSV.
---@return string[]
function export.kinds()
  if can_convert() then return { "svg", "csv", "pdf", "png" } end
  terminal.note "mneme: .pdf and .png are not written: rsvg-convert is not installed"
  terminal.note "  apt-get install librsvg2-bin, then the same command"
  return { "svg", "csv" }
end

return export
