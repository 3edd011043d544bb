"use strict";
// Pointing at a cell shows where it comes from, or goes.
document.querySelectorAll("figure").forEach((figure) => {
  const caption = figure.querySelector("figcaption");
  const index = (cell) => [...cell.parentElement.children].indexOf(cell);
  const name = (cell) => `${cell.parentElement.dataset.name} element ${index(cell)}`;
  const source = (cell) => {
    const [input, place] = cell.dataset.s.split(".");
    return figure.querySelector(`[data-input="${input}"]`)?.children[place];
  };
  const readers = (cell) => [
    ...figure.querySelectorAll(`[data-s="${cell.parentElement.dataset.input}.${index(cell)}"]`),
  ];
  const said = (cell) => {
    const moved = cell.dataset.s?.match(/^(\d+)\.\?(\d+)$/);
    if (moved) {
      const [of, by] = moved
        .slice(1)
        .map((input) => figure.querySelector(`[data-input="${input}"]`)?.dataset.name ?? "an input");
      return [`${name(cell)} is an element of ${of} that ${by} selects`, []];
    }
    if (cell.dataset.s === "") return [`${name(cell)} is a constant`, []];
    if (cell.dataset.s) {
      const from = source(cell);
      return from ? [`${name(cell)} is ${name(from)}`, [from]] : ["", []];
    }
    if (cell.parentElement.dataset.input === undefined) return ["", []];
    const to = readers(cell);
    const where = to.slice(0, 4).map(name).join(", ") + (to.length > 4 ? " and more" : "");
    return [`${name(cell)} ${to.length ? `goes to ${where}` : "goes nowhere"}`, to];
  };
  figure.addEventListener("pointerover", (event) => {
    figure.querySelectorAll(".lit").forEach((cell) => cell.classList.remove("lit"));
    const cell = event.target.closest("[data-input] i, [data-output] i");
    if (!cell) return;
    const [text, others] = said(cell);
    caption.textContent = text;
    [cell, ...others].forEach((other) => other.classList.add("lit"));
  });
});
