-- core_setting_docs.lua -- explains the settings of cores, by their names, for `mneme help core NAME`: core_setting_docs.txt.
local docs = {}
for _, row in ipairs(require "mneme.base.word_lists" "models/core_setting_docs.txt") do
  for key in row[2]:gmatch "%S+" do docs[key] = row[3] end
end

return docs
