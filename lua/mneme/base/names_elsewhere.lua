-- names_elsewhere.lua -- words of the field and what each means here, as rows { kind, words, answer }: names_elsewhere.txt.
return require "mneme.base.word_lists" "base/names_elsewhere.txt"
