// All is unfolded or folded at once; paper shows what the screen shows.
for (const button of document.querySelectorAll("[data-open]")) {
  button.addEventListener("click", () => {
    for (const one of document.querySelectorAll("details")) one.open = button.dataset.open === "true";
  });
}
