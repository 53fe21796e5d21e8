-- version.lua -- the version of Mneme: `mneme --version`, config.json.
return "0.2.0"
