// Filters hide links, and the years that are left without any.
const form = document.querySelector("#filters"), status = document.querySelector("#status");
const rows = [...document.querySelectorAll("tr[data-kind]")], years = document.querySelectorAll("tbody");
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const words = rows.map((row) => folded(row.textContent));
const show = () => {
  const kinds = new Set(new FormData(form).getAll("kind"));
  const asked = folded(document.querySelector("#search").value).split(/\s+/).filter(Boolean);
  for (const [number, row] of rows.entries()) {
    row.hidden = !kinds.has(row.dataset.kind) || !asked.every((word) => words[number].includes(word));
  }
  for (const year of years) year.hidden = !year.querySelector("tr[data-kind]:not([hidden])");
  const shown = rows.filter((row) => !row.hidden).length, total = rows.length;
  status.textContent = shown === total ? `${total} lien${total > 1 ? "s" : ""}.` : `${shown} lien${shown > 1 ? "s" : ""} sur ${total} répond${shown > 1 ? "ent" : ""} aux filtres.`;
};
form.addEventListener("input", show);
form.addEventListener("reset", () => setTimeout(show));
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
show();
