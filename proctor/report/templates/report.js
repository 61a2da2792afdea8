"use strict";
(function () {
  const $ = (id) => document.getElementById(id);

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }

  // theme: system, light, dark
  const themes = ["system", "light", "dark"];
  function remember(value) { try { localStorage.setItem("proctor-theme", value); } catch (e) { /* no storage */ } }
  function remembered() { try { return localStorage.getItem("proctor-theme"); } catch (e) { return null; } }
  function setTheme(value) {
    if (value === "system") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = value;
    $("theme").textContent = "Theme: " + value;
    $("theme").dataset.value = value;
  }
  setTheme(themes.includes(remembered()) ? remembered() : "system");
  $("theme").hidden = false;
  $("theme").addEventListener("click", () => {
    const next = themes[(themes.indexOf($("theme").dataset.value) + 1) % themes.length];
    setTheme(next);
    remember(next);
  });

  // sorting: a button in every heading; cells without a figure stay last
  function cellValue(row, column) {
    const cell = row.cells[column];
    if (!cell) return null;
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = cell.textContent.trim();
    if (text === "" || text === "-") return null;
    return isNaN(Number(text)) ? text : Number(text);
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = make("button", { type: "button" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row, place) => ({ row, place, value: cellValue(row, column) }));
        rows.sort((a, b) => {
          if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
          return (down ? -1 : 1) * compare(a.value, b.value) || a.place - b.place;
        });
        body.append(...rows.map((entry) => entry.row));
      });
    });
  }
  for (const input of document.querySelectorAll("input[data-filter]")) {
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of $(input.dataset.filter).tBodies[0].rows) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      }
    });
  }
  window.addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; });

  // transcripts: script files beside the page, each loaded once
  const index = JSON.parse($("index").textContent);
  if (!index.total) return;
  const waiting = new Map();
  const loaded = new Map();
  const KEPT_PAGES = 40;
  window.proctorLoaded = (name, value) => { const entry = waiting.get(name); if (entry) entry.value = value; };
  function load(name) {
    if (loaded.has(name)) return loaded.get(name);
    const promise = new Promise((resolve, reject) => {
      const entry = {};
      waiting.set(name, entry);
      const script = make("script", { src: "transcripts/" + name + ".js", charset: "utf-8" });
      script.onload = () => {
        script.remove();
        waiting.delete(name);
        if (entry.value === undefined) reject(new Error(name)); else resolve(entry.value);
      };
      script.onerror = () => {
        script.remove();
        waiting.delete(name);
        loaded.delete(name);
        reject(new Error("transcripts/" + name + ".js can't be read; the folder transcripts belongs beside this page"));
      };
      document.head.append(script);
    });
    loaded.set(name, promise);
    const pages = [...loaded.keys()].filter((key) => key.startsWith("page-"));
    if (pages.length > KEPT_PAGES) loaded.delete(pages[0]);
    return promise;
  }

  const EXAM = 0, CANDIDATE = 1, ITEM = 2, HALF = 3, SCORE = 4, STOP = 5, TIME = 6;
  const rows = [];
  const items = [];
  let rowFiles = 0;
  async function loadRows(count) {
    while (rowFiles < count) {
      const file = rowFiles;
      const value = await load("rows-" + String(file).padStart(3, "0"));
      if (rowFiles !== file) continue; // another caller was quicker
      for (const row of value.rows) rows.push(row);
      for (const item of value.items) items.push(item);
      rowFiles += 1;
    }
  }
  function pageOf(number) {
    let low = 0, high = index.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (index.starts[middle] <= number) low = middle; else high = middle - 1;
    }
    return low;
  }
  const pageName = (page) => "page-" + String(page).padStart(5, "0");

  function address(row) {
    const parts = [index.exams[row[EXAM]].name, index.candidates[row[CANDIDATE]], items[row[ITEM]][0]];
    if (row[TIME] > 1) parts.push(String(row[TIME]));
    return "#t/" + parts.map(encodeURIComponent).join("/");
  }

  const filters = ["exam", "candidate", "half", "stop"].map((key) => $("f-" + key));
  const columns = [EXAM, CANDIDATE, HALF, STOP];
  const SHOWN = 25;
  let found = [];
  let first = 0;
  let search = 0;
  let current = -1;

  function wanted() {
    const chosen = filters.map((select) => (select.value === "" ? null : Number(select.value)));
    const number = (id) => ($(id).value === "" ? null : Number($(id).value));
    return { chosen, low: number("f-low"), high: number("f-high"), text: $("f-text").value.trim().toLowerCase() };
  }
  const isFiltered = (w) => w.text !== "" || w.low !== null || w.high !== null || w.chosen.some((c) => c !== null);
  function fits(row, w) {
    for (let i = 0; i < columns.length; i += 1) if (w.chosen[i] !== null && row[columns[i]] !== w.chosen[i]) return false;
    if (w.low !== null && (row[SCORE] === null || row[SCORE] < w.low)) return false;
    return w.high === null || (row[SCORE] !== null && row[SCORE] <= w.high);
  }
  const named = (row, text) => {
    const [id, question] = items[row[ITEM]];
    return id.toLowerCase().includes(text) || question.toLowerCase().includes(text);
  };
  const said = (blocks, text) => blocks.some((b) => (b.x !== undefined && b.x.toLowerCase().includes(text)) ||
    (b.rows || []).some((r) => r.some((c) => String(c).toLowerCase().includes(text))));

  async function find() {
    const turn = (search += 1);
    const w = wanted();
    try {
      await loadRows(isFiltered(w) ? index.row_files : 1);
      if (turn !== search) return;
      const fitting = [];
      for (let i = 0; i < rows.length; i += 1) if (fits(rows[i], w)) fitting.push(i);
      if (w.text === "" || !$("f-deep").checked) {
        found = w.text === "" ? fitting : fitting.filter((i) => named(rows[i], w.text));
      } else {
        found = [];
        let page = -1;
        for (const i of fitting) {
          if (pageOf(i) !== page) {
            page = pageOf(i);
            $("count").textContent = "Searching " + (page + 1) + " of " + index.starts.length + " files; " + found.length + " found so far.";
          }
          const value = await load(pageName(page));
          if (turn !== search) return;
          if (named(rows[i], w.text) || said(value[i - index.starts[page]], w.text)) found.push(i);
        }
      }
    } catch (error) {
      $("count").textContent = error.message;
      return;
    }
    first = 0;
    show(isFiltered(w) ? found.length + " of " + index.total + " records" : index.total + " records");
  }

  function show(text) {
    const total = isFiltered(wanted()) ? found.length : index.total;
    const body = $("list").tBodies[0];
    body.replaceChildren();
    for (const i of found.slice(first, first + SHOWN)) {
      const row = rows[i];
      const exam = index.exams[row[EXAM]];
      const [id, question] = items[row[ITEM]];
      const link = make("a", { href: address(row) });
      link.append(...visible(id));
      body.append(make("tr", { "aria-current": i === current ? "true" : null },
        make("td", { class: "text" }, link),
        make("td", { class: "text" }, exam.name),
        make("td", { class: "text" }, index.candidates[row[CANDIDATE]]),
        make("td", { class: "text narrow" }, index.halves[row[HALF]]),
        make("td", { title: exam.score }, row[SCORE] === null ? "-" : String(row[SCORE])),
        make("td", { class: "text narrow" }, index.stops[row[STOP]].replaceAll("_", " ")),
        make("td", { class: "question" }, ...visible(question))));
    }
    const last = Math.min(first + SHOWN, total);
    if (text !== undefined) $("count").dataset.text = text;
    $("count").textContent = $("count").dataset.text + (total ? "; shown are " + (first + 1) + " to " + last + "." : ".");
    $("list").hidden = false;
    $("pager").hidden = total <= SHOWN;
    $("before").disabled = first === 0;
    $("after").disabled = first + SHOWN >= total;
  }

  async function turnTo(place) {
    first = Math.max(0, place);
    if (!isFiltered(wanted())) { // unfiltered, the list grows as it is read
      await loadRows(Math.min(index.row_files, Math.floor((first + SHOWN) / 5000) + 1));
      found = rows.map((_, i) => i);
    }
    show();
  }

  // what can't be seen is shown: control characters, direction marks, zero-width characters
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}/gu;
  function visible(text) {
    const parts = [];
    let last = 0;
    for (const match of text.matchAll(HIDDEN)) {
      if (match.index > last) parts.push(text.slice(last, match.index));
      const code = match[0].codePointAt(0);
      const name = code === 27 ? "ESC" : code === 13 ? "CR" : "U+" + code.toString(16).toUpperCase().padStart(4, "0");
      parts.push(make("span", { class: "ctl", title: "invisible character" }, name));
      last = match.index + match[0].length;
    }
    if (last < text.length || !parts.length) parts.push(text.slice(last));
    return parts;
  }

  const AT_FIRST = 6000;
  function saidBlock(text) {
    const box = make("div", { class: "said", dir: "ltr", tabindex: text.length > 1500 ? "0" : null });
    if (text === "") { box.append(make("i", {}, "(empty)")); return [box]; }
    box.append(...visible(text.slice(0, AT_FIRST)));
    if (text.length <= AT_FIRST) return [box];
    const more = make("button", { type: "button" }, "Show all " + text.length.toLocaleString("en") + " characters");
    more.addEventListener("click", () => { box.replaceChildren(...visible(text)); more.remove(); box.focus(); });
    return [box, more];
  }

  function shade(value) { // log-probability: white at 0, deep orange from -10
    const depth = Math.min(1, Math.max(0, -value / 10));
    return "rgb(" + [255, 250 - 120 * depth, 235 - 205 * depth].map(Math.round).join(",") + ")";
  }
  function tokens(block) {
    const box = make("div", { class: "tokens said", dir: "ltr" });
    for (const [text, value, rank] of block.rows) {
      const said = value.toFixed(2) + " nats" + (rank === null ? "" : ", rank " + rank);
      const token = make("span", { class: "tok", title: said });
      token.style.background = shade(value);
      token.append(...visible(text));
      box.append(token);
    }
    const legend = make("div", { class: "legend" }, "log-probability, nats:");
    for (const value of [0, -2.5, -5, -7.5, -10]) {
      const patch = make("i", {});
      patch.style.background = shade(value);
      legend.append(patch, value === -10 ? "-10 or less" : String(value));
    }
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...["token", "log-probability", "rank"].map((n, i) =>
      make("th", { scope: "col", class: i ? null : "text" }, n)))), make("tbody", {}, ...block.rows.map(([text, value, rank]) =>
      make("tr", {}, make("td", { class: "text" }, ...visible(JSON.stringify(text))), make("td", {}, value.toFixed(2)), make("td", {}, rank === null ? "-" : String(rank))))));
    const mean = block.rows.reduce((sum, row) => sum + row[1], 0) / Math.max(1, block.rows.length);
    return [legend, box, make("p", { class: "dim" }, "Mean of " + block.rows.length + " tokens: " + mean.toFixed(2) + " nats."),
      make("details", {}, make("summary", {}, "The same as a table"), make("div", { class: "scroll" }, table))];
  }
  function verdict(block) {
    const body = make("tbody", {}, ...block.rows.map(([aspect, score, comment]) => make("tr", {},
      make("th", { scope: "row" }, ...visible(String(aspect))), make("td", {}, score === null ? "-" : String(score)),
      make("td", { class: "wide" }, ...visible(String(comment || ""))))));
    return [make("div", { class: "scroll" }, make("table", {}, body))];
  }
  function bars(block) {
    const values = block.rows.map((row) => row[1]).filter((v) => v !== null);
    const worst = Math.min(...values, -1e-9);
    return [make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, ...block.rows.map(([label, value, mark]) => {
      const bar = make("span", { class: "bar" });
      bar.style.width = value === null ? "0" : (0.4 + 11 * (1 - value / worst)).toFixed(2) + "rem";
      return make("tr", {}, make("th", { scope: "row" }, label), make("td", {}, value === null ? "-" : value.toFixed(3)),
        make("td", { class: "text" }, bar), make("td", { class: "text" }, mark));
    }))))];
  }
  const DRAW = { tokens, verdict, bars, say: (b) => saidBlock(b.x), data: (b) => saidBlock(b.x) };

  function button(text, act, enabled) {
    const node = make("button", { type: "button", disabled: !enabled }, text);
    node.addEventListener("click", act);
    return node;
  }

  let opening = 0;
  async function open(number) {
    const turn = (opening += 1);
    const page = pageOf(number);
    const value = await load(pageName(page));
    if (turn !== opening) return;
    current = number;
    const row = rows[number];
    const exam = index.exams[row[EXAM]];
    const box = $("transcript");
    box.replaceChildren();
    const score = row[SCORE] === null ? "no score" : "score " + row[SCORE] + " (" + exam.score + ")";
    const place = found.indexOf(number);
    const go = (step) => () => { location.hash = address(rows[found[place + step]]); };
    box.append(make("h3", {}, exam.name + ", " + index.candidates[row[CANDIDATE]] + ": item ", ...visible(items[row[ITEM]][0])),
      make("p", { class: "dim" }, [index.halves[row[HALF]], score, index.stops[row[STOP]].replaceAll("_", " ")].filter(Boolean).join("; ")),
      make("div", { class: "buttons" }, button("Previous", go(-1), place > 0), button("Next", go(1), place >= 0 && place + 1 < found.length),
        make("a", { href: address(row) }, "Permanent link"), button("Close", close, true)));
    for (const block of value[number - index.starts[page]]) {
      const who = make("div", { class: "who" }, make("b", {}, block.who), block.n ? " " : "", ...(block.n ? visible(block.n) : []));
      box.append(make("div", { class: "block " + (/^[a-z]+$/.test(block.who) ? block.who : "") }, who, ...DRAW[block.t](block)));
    }
    box.hidden = false;
    show();
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "start" });
  }
  function close() {
    opening += 1;
    const old = current;
    current = -1;
    $("transcript").hidden = true;
    history.replaceState(null, "", "#transcripts");
    show();
    const link = [...$("list").querySelectorAll("a")].find((a) => rows[old] && a.getAttribute("href") === address(rows[old]));
    (link || $("f-text")).focus();
  }
  $("transcript").addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });

  async function follow() {
    if (!location.hash.startsWith("#t/")) return;
    let parts;
    try { parts = location.hash.slice(3).split("/").map(decodeURIComponent); } catch (e) { return; }
    const time = parts.length > 3 ? Number(parts[3]) : 1;
    const isIt = (row) => row && index.exams[row[EXAM]].name === parts[0] && index.candidates[row[CANDIDATE]] === parts[1] &&
      items[row[ITEM]][0] === parts[2] && row[TIME] === time;
    try {
      let at = 0;
      for (let file = 1; file <= index.row_files; file += 1) {
        await loadRows(file);
        for (; at < rows.length; at += 1) if (isIt(rows[at])) { await open(at); return; }
      }
      $("count").textContent = "There is no transcript " + location.hash.slice(3) + " in this report.";
      $("count").scrollIntoView({ block: "center" });
    } catch (error) {
      $("count").textContent = error.message;
    }
  }

  $("noscript").hidden = true;
  $("filters").hidden = false;
  let pause = 0;
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(find, 150); });
  $("filters").addEventListener("reset", () => setTimeout(find, 0));
  $("before").addEventListener("click", () => turnTo(first - SHOWN));
  $("after").addEventListener("click", () => turnTo(first + SHOWN));
  window.addEventListener("hashchange", follow);
  find().then(follow);
})();
