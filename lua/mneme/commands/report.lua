-- report.lua -- `mneme report`: what lab/reports/report.lua takes on the command line.
local options = require "mneme.commands.options"

return { name = "report", doc = "write a report of a sweep or of runs: claims and verdicts, figures, settings, resources", loads = true,
  about = [[
One self-contained HTML page, or Markdown, from which pandoc makes LaTeX or PDF.  First the question, a card for each
claim, the main figure and what the evidence is worth; then results, method, settings and runs.  The page of an unfinished study says so, so it
can be written at any time.]],
  arguments = { { "paths", "STUDY|RUN|FILE.jsonl", "a sweep's folder, runs, or a file of finished runs", noun = "study or runs", several = true } },
  options = {
    { "out", "the page; Markdown has its figures in the folder FILE-figures", type = "file", endings = { "html", "htm", "md" },
      unless = "STUDY/report.html; of FILE.jsonl FILE.html here" },
    { "figures", "also each figure in files of its own: .svg, .pdf, .png and .csv", type = "folder" },
    { "script", "the study's script, if it was moved, or the one that a file of finished runs is of", type = "text", example = "study.lua" },
    { "export", "also write the finished runs to this file, which mneme sweep SCRIPT import=FILE takes", type = "text", example = "runs.jsonl" },
    unpack(options.drawing),
  },
  run = function(o) return require("mneme.lab.reports.report").main(o) end }
