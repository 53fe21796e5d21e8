-- init.lua -- the door of the lab: studies over runs, tuning, reports.  Its names in mn, in the form of parts in lua/mneme/init.lua.
return { parts = {
  study = { "mneme.lab.study.study", "new" },
} }
