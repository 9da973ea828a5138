// Says something to those who do not see the page.

export function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
}
