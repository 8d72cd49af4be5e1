// Escape goes back to the citation whose passage was opened.
let opener = null;
addEventListener("click", (event) => {
  opener = event.target.closest("#answer .cite") ?? opener;
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") opener?.focus();
});

// A word of the question lights up the word that answers it.
const light = (event) => {
  for (const one of document.querySelectorAll(".lit")) one.classList.remove("lit");
  const link = event.target.closest?.("a.word");
  if (link) placeOf(link)?.closest("span").querySelector(".word")?.classList.add("lit");
};
addEventListener("pointerover", light);
addEventListener("focusin", light);

// A passage or a reference is copied by hand of the browser: a file, or a notebook's frame, may not use the clipboard otherwise.
addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  document.addEventListener("copy", (copying) => {
    copying.clipboardData.setData("text/plain", button.dataset.copy);
    copying.preventDefault();
  }, { once: true });
  const label = button.textContent;
  button.textContent = document.execCommand("copy") ? "Copié" : button.dataset.copy;
  setTimeout(() => { button.textContent = label; }, 3000);
});

// Beside the answer stands the first passage that it cites; Tab still begins at the top, not where that scrolled.
const first = document.querySelector("#answer .cite");
if (first && matchMedia("(min-width: 64rem)").matches) {
  const place = placeOf(first);
  if (place) show(place);
  document.body.tabIndex = -1;
  document.body.focus({ preventScroll: true });
  document.body.removeAttribute("tabindex");
}
