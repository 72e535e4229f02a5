const search = document.querySelector("input");
search.addEventListener("input", () => {
  const text = search.value.toLowerCase();
  for (const row of document.querySelectorAll("tr[data-name]")) row.hidden = !row.dataset.name.toLowerCase().includes(text);
});
