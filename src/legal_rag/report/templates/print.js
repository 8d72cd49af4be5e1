// On paper everything is open but the texts that the reader left closed; browsers that cannot say so in their style are
// told here.
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open], .document)")) {
    one.open = true;
    one.dataset.closed = "";
  }
});
addEventListener("afterprint", () => {
  for (const one of document.querySelectorAll("details[data-closed]")) {
    one.open = false;
    delete one.dataset.closed;
  }
});
