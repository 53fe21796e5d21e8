-- late.lua -- the declarations of commands whose files still read their words themselves.
local options = require "mneme.commands.options"

local common, late = options.common, {}
local RUN = { { "folder", "RUN", "a run's folder", noun = "run" } }
local function all(...)
  local list = {}
  for _, part in ipairs { ... } do
    if type(part[1]) == "table" then for _, option in ipairs(part) do list[#list + 1] = option end else list[#list + 1] = part end
  end
  return list
end
local agent = { common.seed, common.greedy, common.best, common.checkpoint, common.threads }
local function episodes(n, least) return { "episodes", "how many episodes", type = "whole", range = { least or 1 }, default = n } end
local function add(c)
  c.loads = true
  c.run = function(o) return require("mneme.commands." .. c.name).main(o.words) end
  late[c.name] = c
end

add { name = "eval", doc = "evaluate a trained agent on fresh episodes", others = "env", arguments = { { "folders", "RUN|STUDY",
  "a run; with outcomes=1 also several, and studies", noun = "run", several = true } }, about = [[
Success, return and length with confidence intervals.  Of a run on sequences: accuracy, loss, perplexity and bits per character on held-out
sequences; length=1024, say, shows how far a memory reaches.]],
  options = all(episodes(1000), { "num_envs", "environments that are stepped together", type = "whole", range = { 1 }, unless = "64", example = "64" }, agent, {
    { "record", "keep the episodes as trajectories", type = "folder", example = "episodes" },
    { "record_every", "keep every so many", type = "whole", range = { 1 }, default = 1 },
    { "internals", "with record=: with the agent's memory", type = "switch", default = false },
    { "outcomes", "the share of episodes that reached each outcome of the environment (Craftax: achievements), with intervals, and the Crafter score",
      type = "switch", default = false },
    { "out", "with outcomes=1: the table", type = "file", endings = { "csv" } },
    { "split", "of a run on sequences: the part", type = "choice", choices = { "train", "valid", "test" }, unless = "test" },
    { "batches", "of a run on sequences: batches of the part", type = "whole", range = { 1 }, unless = "2000 sequences, or all", example = "10" },
  }) }
add { name = "view", doc = "watch an agent (live or trained) or a trajectory, in a window, as a picture or as a web page", arguments = { { "things",
  "RUN|FILE.mnt|SCENE", "up to four, side by side in the same environments with one clock", noun = "run, trajectory or scene", several = true } },
  about = [[
With an intervention (erase=PART at=STEP), from this step on the untouched and the altered agent side by side, as in mneme intervene.
In the window, h lists the keys: f goes to the next failure, i intervenes at the step shown, Tab changes the scene.]],
  options = all({
    { "out", ".png: the last step, or step at=; .gif, .mp4: all of episodes=1, or a whole trajectory; .html: the episode number episodes=1, to be "
      .. "played in a browser, opened at step at=", type = "file", endings = { "png", "gif", "mp4", "html" } },
    { "at", "the step that is shown, or at which an intervention begins", type = "whole", example = "40" },
    episodes(1), { "seed", "which episodes", type = "whole", example = "1" }, common.greedy, common.checkpoint,
    { "scene", "the page (mneme list scenes)", type = "text", unless = "the environment's", example = "memory" },
    { "wait", "seconds that the panels of a picture or page may compute; they say what is missing then", type = "whole", default = 10 },
    common.size, common.theme, common.scale }, options.interventions) }
add { name = "intervene", doc = "ablate part of a memory, clamp a gate or change the world, and measure the effect on success", others = "env",
  arguments = RUN, about = [[
Plays every episode twice, with and without an intervention at step `at`, with the same environments and random numbers: the two are equal up
to that step, and every later difference is the intervention's effect.  erase=each at=each: every part at every step, as mneme where.]],
  options = all({ { "at", "the step", type = "whole", also = "each", example = "40", hint = "one step at a time; every step: mneme where RUN" } },
    options.interventions, { episodes(200), { "num_envs", "environments that are stepped together", type = "whole", range = { 1 }, unless = "64",
      example = "64" } }, agent, { "record", "keep all episodes as trajectories", type = "folder", example = "episodes" }) }
add { name = "credit", doc = "which earlier observations an agent's value and action depend on", others = "env", arguments = RUN, about = [[
Plays an episode and prints how large the gradient of the value, or of the chosen action's logit, at step `at` is with respect to the
observation of every earlier step.  A gradient says what a small change would do: mneme where RUN erases memory instead.  Of several episodes:
means over them, by steps before the one that is explained.]],
  options = all({ { "at", "the step that is explained", type = "whole", unless = "the last of the episode", example = "10" },
    { "of", "the value, or the chosen action's logit", type = "choice", choices = { "value", "action" }, default = "value" }, episodes(1) }, agent,
    { "out", "a heat map of every step against every earlier one (one episode), or all gradients", type = "file", endings = { "svg", "json" } }) }
add { name = "probe", doc = "what does a memory know, step by step: linear readings of the task's facts", others = "env", arguments = RUN, about = [[
Linear readings of the facts that the environment declares, from all of the memory and from each part, on episodes that they were not fitted
to.  Of a class the table has the probability of the right answer, of a number the share of its variance that is read.  control: the same
with shuffled answers; what is not above it is not read.  What can be read need not be used: mneme where RUN.]],
  options = all({ "episodes", "how many episodes, of which 7 in 10 are learned from", type = "whole", range = { 48 }, default = 256 }, agent, {
    { "facts", "which", type = "list", unless = "all that the environment declares (mneme help env NAME)", example = "cue,position" },
    { "every", "steps between those that are read", type = "whole", range = { 1 }, unless = "about 32 steps", example = "4" },
    { "last", "the last step that is read", type = "whole", unless = "one that half of the episodes reach", example = "40" },
    { "out", ".json: all numbers; else a figure for each fact, FILE-FACT where there are several", type = "file",
      endings = { "json", "svg", "png", "pdf", "csv", "tex", "gp" } } }) }
add { name = "where", doc = "where is it remembered: success lost by erasing each part of the memory at each step", others = "env", arguments = RUN,
  about = [[
Every cell of the map plays the same episodes with the same random numbers, and continues from the state that was kept at its step.  The map is
kept in RUN/where after each column: killed, the same command resumes it.]],
  options = all({ episodes(64) }, agent, {
    { "by", "the parts: heads (or groups of channels) and layers, or layers alone", type = "choice", choices = { "head", "layer" }, unless = "head" },
    { "every", "steps between columns", type = "whole", range = { 1 }, unless = "about 24 columns", example = "4" },
    { "test", "hold: freeze each part from that step on; gain in success: which part lost it, and when", type = "choice", choices = { "erase", "hold" },
      unless = "erase; where more than one episode in twenty fails, both" },
    { "measure", "what is lost; kl: how far the policy is from the untouched one (nats, added up over the steps that follow)", type = "choice",
      choices = { "success", "return", "kl" }, unless = "success where each score is 0 or 1, else the return" },
    { "checkpoints", "a map of each kept checkpoint, as a film: out=FILE.gif or .mp4", type = "switch", default = false },
    { "out", "the numbers (.json), a figure (.csv .svg .pdf), a picture (.png) or film", type = "file",
      endings = { "json", "csv", "svg", "pdf", "png", "gif", "mp4" } },
    common.size, common.theme, common.scale }) }

return late
