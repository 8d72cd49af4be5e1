const sheet = JSON.parse(document.getElementById("sheet").textContent);
const by = (id) => document.getElementById(id);
const KEY = `legal-rag pool ${sheet.digest}`;
const GRADE = /^[0-3]$/;
const nameOf = ([qid, , docId]) => `${qid} ${docId}`; // neither holds a blank
let marks = {}; // by name of the pair
let at = 0;

const keep = () => {
  try { localStorage.setItem(KEY, JSON.stringify(marks)); } catch {
    by("notice").textContent = "Ce navigateur ne garde pas les notes : enregistrez la feuille avant de fermer la page.";
  }
};
const nextUnmarked = (from) => {
  const order = [...sheet.rows.keys()].map((n) => (from + n) % sheet.rows.length);
  return order.find((n) => !(nameOf(sheet.rows[n]) in marks)) ?? Math.min(from, sheet.rows.length - 1);
};
const show = () => {
  const [, question, docId, title, passage] = sheet.rows[at];
  const done = sheet.rows.filter((row) => nameOf(row) in marks).length;
  Object.entries({ question, title, document: docId, passage }).forEach(([id, text]) => { by(id).textContent = text; });
  by("place").textContent = `${at + 1} / ${sheet.rows.length}`;
  by("progress").value = done;
  by("status").textContent = `notées : ${done} sur ${sheet.rows.length}`;
  for (const button of document.querySelectorAll("[data-grade]")) {
    button.setAttribute("aria-pressed", String(marks[nameOf(sheet.rows[at])] === button.dataset.grade));
  }
};
const go = (to) => {
  at = Math.max(0, Math.min(sheet.rows.length - 1, to));
  show();
};
const mark = (grade) => {
  marks[nameOf(sheet.rows[at])] = grade;
  keep();
  go(at + 1);
};

// CSV as Python's csv reads and writes it: quotation marks are doubled within them.
const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const toCsv = () => {
  const rows = sheet.rows.map((row) => [...row, marks[nameOf(row)] ?? ""]);
  return `\ufeff${[sheet.columns, ...rows].map((row) => row.map(quoted).join(",")).join("\n")}\n`;
};
const fromCsv = (text) => {
  const separator = text.split("\n", 1)[0].includes(";") ? ";" : ",";
  const field = new RegExp(`(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n]*))(${separator}|\\r?\\n|$)`, "gy");
  const rows = [[]];
  for (const [, inner, plain, end] of text.replace(/^\ufeff/, "").matchAll(field)) {
    rows.at(-1).push(inner === undefined ? plain : inner.replaceAll('""', '"'));
    if (end !== separator) rows.push([]);
  }
  return rows;
};
const load = (text) => {
  const [head, ...rows] = fromCsv(text);
  const places = ["qid", "doc_id", "relevance"].map((name) => head.indexOf(name));
  const known = new Set(sheet.rows.map(nameOf));
  const filled = rows.map((row) => places.map((place) => (row[place] ?? "").trim())).filter(([, , grade]) => grade);
  const read = filled.filter(([qid, docId, grade]) => known.has(`${qid} ${docId}`) && GRADE.test(grade));
  for (const [qid, docId, grade] of read) marks[`${qid} ${docId}`] = grade;
  keep();
  const refused = filled.length - read.length;
  const others = refused ? ` ; refusées, d’une autre feuille ou pas de 0 à 3 : ${refused}` : "";
  by("notice").textContent = `Notes reprises : ${read.length}${others}.`;
  go(nextUnmarked(0));
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (GRADE.test(event.key)) mark(event.key);
  else if (event.key === "ArrowLeft") go(at - 1);
  else if (event.key === "ArrowRight") go(at + 1);
});
for (const button of document.querySelectorAll("[data-grade]")) button.addEventListener("click", () => mark(button.dataset.grade));
for (const button of document.querySelectorAll("[data-step]")) button.addEventListener("click", () => go(at + Number(button.dataset.step)));
by("next").addEventListener("click", () => go(nextUnmarked(at)));
by("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([toCsv()], { type: "text/csv" }));
  link.download = sheet.name;
  link.click();
});
by("load").addEventListener("change", async (event) => {
  load(await event.target.files[0].text());
  event.target.value = "";
});
try { marks = JSON.parse(localStorage.getItem(KEY)) ?? {}; } catch { keep(); }
go(nextUnmarked(0));
