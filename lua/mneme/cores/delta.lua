-- delta.lua -- galite with update=fastweight: a write replaces what its key already holds (Schlag et al. 2021).
return require("mneme.models.cores").preset("galite", { update = "fastweight", feature = "dpfp" }, {
  doc = "fast weights with the delta rule: C = C + b (v - C k) k^T",
  source = "Schlag, Irie, Schmidhuber 2021, Linear Transformers Are Secretly Fast Weight Programmers, section 4.2",
})
