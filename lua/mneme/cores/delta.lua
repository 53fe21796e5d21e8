-- delta.lua -- a setting of galite: what a key already holds is replaced, not added to.
return require("mneme.models.core").preset("galite", { update = "fastweight", feature = "dpfp" }, {
  doc = "fast weights with the delta rule: C = C + b (v - C k) k^T",
  source = "Schlag, Irie, Schmidhuber 2021, Linear Transformers Are Secretly Fast Weight Programmers, section 4.2",
})
