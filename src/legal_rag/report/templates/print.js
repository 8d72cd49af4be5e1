// On paper everything is open, at once; browsers that cannot say so in their style are told here.
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open])")) {
    one.dataset.closed = one.getAttribute("name") ?? "";
    one.removeAttribute("name");
    one.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const one of document.querySelectorAll("details[data-closed]")) {
    one.open = false;
    if (one.dataset.closed) one.setAttribute("name", one.dataset.closed);
    delete one.dataset.closed;
  }
});
