-- figure_texts.lua -- what the figures of a report say of themselves, by language: how their intervals come about, what is
-- missing, and against what they are drawn.
local words = {}

words.en = {
  one_seed = "one seed", seeds = "%d seeds", some_seeds = "%d to %d seeds", no_interval = "One seed, no interval.",
  how = "%s of %s, %s.", mean = "Mean", iqm = "Interquartile mean", geometric = "Geometric mean",
  of_logarithms = "95 % interval by Student's t of the logarithms", student = "Student's 95 % t interval",
  bounded = "95 % interval by Student's t, within the range", bootstrap = "95 % bootstrap interval", from_ten = " (bootstrap from ten seeds on)",
  only_mean = "%s of %s.", runs = "Runs of %s, 95 %% bootstrap bands.", none = "No cell is finished.",
  pooled = "Each seed's number is its mean over %s.", over = "Over %s.", and_ = " and ",
  swapped = "%s %s in place of %s, which this study does not have.",
  left_out = "Left out, %s: %s.", left_out_some = "Left out, %s: %d of %d cells, among them %s.",
  reasons = { done = "without this number", open = "not finished", failed = "failed", ["not swept"] = "not swept" },
  no_log = "Without what is 0 or less and has no place on a logarithmic axis: %s.",
  steps = "steps", time = "wall-clock time", processor = "processor time", memory = "peak memory", energy = "energy",
  time_note = "Time: steps divided by the steps a second that runs measured, in the mean of the seeds.",
  flops_note = "FLOPs: steps times what one costs the core, forward and backward; encoder, heads and acting are not counted.",
  logged = "%s, mean of the episodes since the line before", share_above = "share of runs above it", title = "%s by %s", seed = "seed",
  table = require("mneme.figures.data").english,
}

words.de = {
  one_seed = "einem Seed", seeds = "%d Seeds", some_seeds = "%d bis %d Seeds", no_interval = "Ein Seed, kein Intervall.",
  how = "%s von %s, %s.", mean = "Mittel", iqm = "Interquartilsmittel", geometric = "Geometrisches Mittel",
  of_logarithms = "95-%-Intervall nach Students t über Logarithmen", student = "95-%-t-Intervall nach Student",
  bounded = "95-%-Intervall nach Students t, innerhalb der möglichen Werte", bootstrap = "95-%-Bootstrap-Intervall",
  from_ten = " (Bootstrap ab zehn Seeds)",
  only_mean = "%s von %s.", runs = "Läufe von %s, 95-%%-Bootstrap-Bänder.", none = "Noch ist keine Zelle fertig.",
  pooled = "Die Zahl eines Seeds ist sein Mittel über %s.", over = "Über %s.", and_ = " und ",
  swapped = "%s %s anstelle von %s, das diese Studie nicht hat.",
  left_out = "Weggelassen, %s: %s.", left_out_some = "Weggelassen, %s: %d von %d Zellen, darunter %s.",
  reasons = { done = "ohne diese Zahl", open = "nicht fertig", failed = "gescheitert", ["not swept"] = "nicht vorgesehen" },
  no_log = "Ohne das, was 0 oder weniger ist und auf einer logarithmischen Achse keinen Platz hat: %s.",
  steps = "Schritte", time = "Wanduhrzeit", processor = "Prozessorzeit", memory = "Speicher, höchstens", energy = "Energie",
  time_note = "Zeit: Schritte geteilt durch die Schritte je Sekunde, die die Läufe maßen, im Mittel der Seeds.",
  flops_note = "FLOPs: Schritte mal dem, was einer den Kern kostet, vorwärts und rückwärts; Encoder, Köpfe und Handeln sind nicht gezählt.",
  logged = "%s, Mittel der Episoden seit der Zeile davor", share_above = "Anteil der Läufe darüber", title = "%s nach %s", seed = "Seed",
  table = { to = "bis", at = "%s bei %s", by_then = ": der letzte Wert bis dahin", interval = "Intervall", seeds = "Seeds", group = "Gruppe",
    by = "%s nach %s und %s", row = "Zeile", column = "Spalte", value = "Wert" },
}

return words
