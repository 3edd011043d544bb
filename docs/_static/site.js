"use strict";
// Nothing is cut on a small screen: long names in tables break at their words, and tables and drawings
// that are still too wide become smaller.

// Numbers such as 0.79 and 1,100 stay whole, and so do cells that are numbers.
const NAME_PARTS = /(?<=[_./:,\[=-])(?!(?<=\d\.)\d)(?!(?<=\d,)\d{3}\b)(?=\w)|(?<=[a-z])(?=[A-Z])/;
const NUMBER = /^[\d.,]+$/;
const MIN_FONT = 4; // pixels

function allowBreaks(cell) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement.closest(".rule")) texts.push(walker.currentNode);
  }
  for (const text of texts) {
    const parts = text.data.split(NAME_PARTS);
    if (parts.length > 1) text.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
  }
}

function fit() {
  for (const table of document.querySelectorAll(".table-wrapper")) {
    table.classList.remove("tight", "broken");
    for (const name of ["tight", "broken"]) {
      if (table.scrollWidth > table.clientWidth) table.classList.add(name);
    }
  }
  for (const pre of document.querySelectorAll(".highlight pre.drawing")) {
    pre.style.fontSize = "";
    const size = parseFloat(getComputedStyle(pre).fontSize);
    const room = (0.95 * pre.clientWidth) / pre.scrollWidth; // the padding stays
    if (pre.scrollWidth > pre.clientWidth) pre.style.fontSize = `${Math.max(MIN_FONT, size * room)}px`;
  }
}

addEventListener("DOMContentLoaded", () => {
  for (const cell of document.querySelectorAll("table.docutils :is(td, th)")) {
    cell.classList.toggle("number", NUMBER.test(cell.textContent.trim()));
    allowBreaks(cell);
  }
  for (const pre of document.querySelectorAll(".highlight pre")) {
    if (/[│┃─━]|--->/.test(pre.textContent)) pre.classList.add("drawing");
  }
  fit();
  // Figures are drawn anew in the colours of the chosen theme.
  const redraw = () => dispatchEvent(new Event("resize"));
  new MutationObserver(redraw).observe(document.body, { attributeFilter: ["data-theme"] });
});
addEventListener("resize", fit);
