-- minlstm.lua -- mingru with cell=lstm: two gates f and i, of which only f/(f+i) counts.
return require("mneme.models.cores").preset("mingru", { cell = "lstm" }, {
  doc = "an LSTM whose gates do not depend on the state (minLSTM)",
  source = "Feng et al. 2024, Were RNNs All We Needed?, section 3.2 and appendix B; without its blocks",
})
