// A word of the question and the words of the passage that answer it light up together.
const wordsOf = (node) => node.dataset.words.split(" ");

const listen = (match) => {
  const all = [...match.querySelectorAll("[data-words]")];
  const told = match.querySelector(".told");
  const passage = match.querySelector(".passage");
  const show = (chosen) => {
    const wanted = new Set(chosen ? wordsOf(chosen) : []);
    for (const node of all) node.classList.toggle("lit", wordsOf(node).some((word) => wanted.has(word)));
    if (told) told.textContent = chosen ? chosen.title : told.dataset.rest;
    const found = chosen?.matches("button") && all.find((node) => node.matches("mark.lit"));
    if (found) passage.scrollTop = found.offsetTop - passage.clientHeight / 2;
  };
  const wordAt = (event) => event.target.closest("[data-words]");
  match.addEventListener("pointerover", (event) => wordAt(event) && show(wordAt(event)));
  match.addEventListener("pointerleave", () => show(null));
  match.addEventListener("focusin", (event) => show(wordAt(event)));
  match.addEventListener("click", (event) => wordAt(event) && show(wordAt(event)));
};
for (const match of document.querySelectorAll(".match")) listen(match);

// A passage opens where it is cited, even if its title fills the panel; keys go on from there, and Escape goes back.
for (const panel of document.querySelectorAll(".panel")) {
  panel.addEventListener("toggle", () => {
    if (!panel.matches(":popover-open")) return;
    panel.querySelector("h2").focus({ preventScroll: true });
    const cited = panel.querySelector("mark");
    const top = cited ? cited.getBoundingClientRect().top - panel.getBoundingClientRect().top : 0;
    if (top > 0.6 * panel.clientHeight) panel.scrollTop += top - 0.4 * panel.clientHeight;
  });
}
