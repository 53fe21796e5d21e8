-- figure_captions.lua -- the captions of a report's figures: how intervals are computed, what is
-- missing, and the names of axes.
return {
  one_seed = "one seed", seeds = "%d seeds", some_seeds = "%d to %d seeds", no_interval = "One seed, no interval.",
  how = "%s of %s, %s.", mean = "Mean", iqm = "Interquartile mean", geometric = "Geometric mean",
  few_seeds = "With fewer than five seeds each is drawn; the table has the intervals.",
  carried = "A run that stopped because it had solved its task keeps its last value.",
  of_logarithms = "95 % interval by Student's t of the logarithms", student = "Student's 95 % t interval",
  bounded = "95 % interval by Student's t, within the range", bootstrap = "95 % bootstrap interval", from_ten = " (bootstrap from ten seeds on)",
  rank = "mean rank, 1 is the best",
  ranks = "Rank of the mean of %s, mean over %d values of %s; %s. Two differ by more than chance where they are %.2f "
    .. "apart (Nemenyi's test of all pairs).", over_both = "95 %% bootstrap interval over both", no_interval_yet = "no interval of one seed or task",
  half_width = " ±: half of its width.", pairs_apart = " They are: %s.", before = "%s before %s",
  only_mean = "%s of %s.", none = "No run is finished.",
  pooled = "Each seed's number is its mean over %s.", and_ = " and ",
  swapped = "%s %s in place of %s, which this study does not have.",
  left_out = "Left out, %s: %s.", left_out_some = "Left out, %s: %d of %d runs, among them %s.",
  reasons = { done = "without this number", open = "not finished", failed = "failed", ["not swept"] = "not swept" },
  no_log = "Without what is 0 or less and has no place on a logarithmic axis: %s.",
  steps = "steps", time = "wall-clock time", processor = "processor time", memory = "peak memory", energy = "energy",
  logged = "%s, mean of the episodes since the last log line", share_solved = "share of seeds that have reached %s",
  solved_how = "Kaplan and Meier's estimate from %s: a run that ended without having solved it counts until its end.", title = "%s by %s", seed = "seed",
}
