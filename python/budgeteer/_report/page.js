"use strict";
(() => {
  const form = document.querySelector(".search");
  if (!form) return;
  const rows = [...document.querySelectorAll("#chunks tbody tr")];
  const words = form.querySelector("input");
  const state = form.querySelector("select");
  const said = form.querySelector("output");
  const total = rows.length.toLocaleString("en");
  let texts = null; // read when somebody searches
  let waiting = 0;

  const apply = () => {
    waiting = 0;
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (wanted.length && !texts) texts = rows.map((row) => row.textContent.toLowerCase());
    const of = state.value;
    let count = 0;
    rows.forEach((row, at) => {
      const is = (!of || row.dataset.state === of || row.dataset.reason === of)
        && wanted.every((word) => texts[at].includes(word));
      count += is;
      if (row.hidden === is) row.hidden = !is;
    });
    said.value = `${count.toLocaleString("en")} of ${total} chunks`;
  };
  const soon = () => { waiting = waiting || requestAnimationFrame(apply); };
  const show = () => { // the chunk that a link names, whatever the filter says
    const row = document.getElementById(location.hash.slice(1));
    if (!row || !rows.includes(row)) return;
    if (row.hidden) { form.reset(); apply(); }
    const more = row.querySelector("details");
    if (more) more.open = true;
    row.scrollIntoView();
  };

  form.hidden = false;
  form.addEventListener("input", soon);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", show);
  apply();
  show();
})();
