-- init.lua -- the door of the lab: studies over runs, tuning, reports.  Its names in mn, in the form of parts in lua/mneme/init.lua.
-- In all files of the lab these names mean one thing, and docstrings say only what they leave open:
--   spec    what mn.study was given              plan     of sweep.plan: axes, seeds, runs, words
--   study   of folder.load: path, info, runs     runs, r, run, c   StudyRun (lab/study/study_folder.lua)
--   path    a folder; of a run, of a script      words    arguments of a command line, string[]
--   size    "quick", "full", nil                 schema   settings by name with their defaults: they say the types
--   axes    name -> list of values               info     what config.json or study.json says
--   judged, v   verdicts of claims.judge         out      a page of lab/reports/page/blocks.lua
--   t       of tuning.open                       space    of lab/search/search_space.lua
return { parts = {
  study = { "mneme.lab.study.study", "new" },
} }
