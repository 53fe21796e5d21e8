-- init.lua -- mn.figures: figures as plain data (model.lua), drawn as SVG, as a section of a page, for gnuplot, or
-- into a file.  The same data gives the same bytes.
local data = require "mneme.figures.data"
local export = require "mneme.figures.export"
local gnuplot = require "mneme.figures.gnuplot"
local section = require "mneme.figures.html_section"
local svg = require "mneme.figures.svg"

return { svg = svg.draw, section = section.html, head = section.head, csv = data.csv, gnuplot = gnuplot.script,
  export = export.write, kind_of_file = export.kind }
