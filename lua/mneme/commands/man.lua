-- man.lua -- `mneme help man`: the manual page in man(7) format, from the texts of `mneme help`.
local options = require "mneme.commands.options"
local version = require "mneme.base.version"

local man = {}

-- A line of text: backslashes, dashes and a leading dot are escaped for man.
local function plain(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("^([.'])", "\\&%1"))
end

local ending = [[
.SH EXIT STATUS
.TP
0
success
.TP
1
a file, a device or a script failed
.TP
2
the command line or a setting is wrong
.TP
3
training met NaN or infinity; the last good checkpoint is kept
.TP
130, 143
stopped by Ctrl\-C or SIGTERM, after a checkpoint
.SH ENVIRONMENT
.TP
NO_COLOR
no colours in the terminal
.TP
OMP_NUM_THREADS, SLURM_CPUS_PER_TASK
CPU threads, unless threads=N is given
.TP
MNEME_BLAS
openblas: matrix products by OpenBLAS in place of the engine's own; or a library to take for OpenBLAS, or none
.TP
MNEME_FONT
the font of the window, a .ttf file
.TP
MNEME_HOME
the folder that holds Mneme's lua folder
.SH FILES
.TP
runs/NAME
a run: config.json, metrics.jsonl, TensorBoard's events, checkpoints
]]

---The whole page.
function man.page()
  local out = {
    (".TH MNEME 1 \"\" \"mneme %s\" \"User Commands\""):format(version),
    ".SH NAME", "mneme \\- a research sandbox for memory in agents",
    ".SH SYNOPSIS", ".B mneme", ".I COMMAND", "[key=value ...]",
    ".SH DESCRIPTION",
    "Trains agents with memories of many kinds in small environments, shows what they remember, intervenes in it, and",
    "turns grids of runs into figures and reports.  Experiments are short Lua scripts; every setting of a script is a",
    "key=value argument.", ".SH COMMANDS",
  }
  for _, c in ipairs(options.commands.all(true)) do
    out[#out + 1] = (".TP\n.B %s\\fR%s\n%s\n.RS"):format(c.name, plain(options.usage(c):sub(#c.name + 7)), plain(c.doc))
    for line in (c.about or ""):gmatch "[^\n]+" do out[#out + 1] = plain(line) end
    for _, row in ipairs(options.rows(options.of(c))) do out[#out + 1] = (".TP\n.B %s\n%s"):format(plain(row[1]), plain(row[2])) end
    out[#out + 1] = ".RE"
  end
  return table.concat(out, "\n") .. "\n" .. ending
end

return man
