-- layout.lua -- base/layout.lua, under the name that compare, run_list and tune still use.
return require "mneme.base.layout"
