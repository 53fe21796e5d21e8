-- init.lua -- the door of insight: what an agent does, and what it remembers.
local insight = {}

-- Its names in mn, in the form of parts in lua/mneme/init.lua.
insight.parts = {
  scene = { "mneme.insight.view.scene", call = "new", fields = { "about", "body", "lay", "load", "panels" } },
  interventions = { "mneme.insight.episodes.interventions" },
  causal_map = { "mneme.insight.episodes.causal_map", "new" },
  figures = { "mneme.insight.figures" },
  svg = { group = { new = { "mneme.insight.figures.svg_writer", "new" }, css = { "mneme.insight.figures.figure_style", "css" },
    color = { "mneme.insight.figures.figure_style", "color" } } },
  stepper = { "mneme.insight.episodes.stepper", fields = { "from_run", "new" } },
  inspect = { group = {
    implicit_attention = { "mneme.models.implicit_attention", fields = { "horizon", "no_horizon", "note", "problem", "reaches", "size", "weights" } },
    state_arrays = { "mneme.models.state_arrays",
      fields = { "count", "grid", "owners", "parse", "size", "slice", "summary" } },
    contributions = { "mneme.insight.episodes.contributions", fields = { "LITTLE", "new", "of_frame" } },
    patching = { "mneme.insight.episodes.patching", fields = { "new", "of_frames", "play" } },
    heads = { "mneme.insight.view.heads", fields = { "axes", "element", "fold", "kind", "shares" } },
    attention_history = { "mneme.insight.view.attention_history" } } },
  ui = { group = { canvas = { "mneme.base.canvas", fields = { "DIVERGING", "SEQUENTIAL", "fade", "ink", "margin", "number", "theme" } },
    keyboard = { "mneme.insight.view.action_keys", fields = { "HOME", "LEFT", "PAGE_DOWN", "RIGHT" } },
    hatch = { "mneme.insight.view.hatch" }, selection = { "mneme.insight.view.selection" }, step_heatmap = { "mneme.insight.view.step_heatmap" },
    words = { "mneme.insight.figures.text", "words" } } },
  measure = { group = { credit = { "mneme.insight.measure.credit", fields = { "map", "play" } },
    learning_speed = { "mneme.insight.measure.learning_speed", "of" },
    costs = { "mneme.models.costs", fields = { "attention" } },
    denominators = { "mneme.insight.measure.denominators" }, endless_stream = { "mneme.insight.measure.endless_stream" },
    credit_angle = { "mneme.insight.measure.credit_angle", fields = { "watch" } },
    gradient_error = { "mneme.insight.measure.gradient_error", fields = { "of", "watch" } },
    gradient_reach = { "mneme.insight.measure.gradient_reach", fields = { "measure" } },
    linear_probes = { "mneme.insight.measure.linear_probes", fields = { "agent", "examine", "of_state" } },
    readings = { "mneme.insight.measure.readings", fields = { "new" } },
    readings_in_words = { "mneme.insight.measure.readings_in_words", fields = { "of", "why" } },
    readings_of_frame = { "mneme.insight.measure.readings_of_frame", fields = { "answers", "episode", "job", "map", "settle", "worth" } },
    timing = { "mneme.insight.measure.timing", fields = { "fill", "forward", "looking_back", "memory", "sequence", "step", "training" } },
    weight_transplant = { "mneme.insight.measure.weight_transplant" } } },
}

return insight
