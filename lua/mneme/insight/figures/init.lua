-- init.lua -- mn.figures: figures as plain data (figure_format.lua), drawn as SVG, as a section of a page, or into a
-- file.  The same data gives the same bytes.
local figure_csv = require "mneme.insight.figures.figure_csv"
local export = require "mneme.insight.figures.export"
local html_section = require "mneme.insight.figures.html_section"
local svg = require "mneme.insight.figures.svg"

return { svg = svg.draw, section = html_section.html, head = html_section.head, csv = figure_csv.csv, export = export.write, kind_of_file = export.kind }
