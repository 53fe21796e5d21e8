// section.js -- saves the drawing that is seen, with its colours, as a file.
document.addEventListener("click",function(e){var a=e.target.closest?e.target.closest("a[data-drawing]"):null;if(!a)return;
var part=a.closest(".mn-part"),all=part.querySelectorAll("svg.mn-figure"),seen=null;
for(var i=0;i<all.length;i++)if(all[i].getBoundingClientRect().width>0){seen=all[i];break}
if(!seen)return e.preventDefault();var copy=seen.cloneNode(true),css=document.createElementNS("http://www.w3.org/2000/svg","style");
css.textContent=document.getElementById("mn-figure-colors").textContent;copy.insertBefore(css,copy.firstChild);
a.href=URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)],{type:"image/svg+xml"}))});
