if(!matchMedia("(min-width:1100px)").matches)document.querySelector("nav details").removeAttribute("open");
var folded=[];addEventListener("beforeprint",function(){folded=[].slice.call(document.querySelectorAll("main details:not([open])"));
folded.forEach(function(d){d.open=true})});addEventListener("afterprint",function(){folded.forEach(function(d){d.open=false})});
