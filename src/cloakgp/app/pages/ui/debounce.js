// Waits until nothing more comes.

export function debounce(action, milliseconds) {
  let timer = null;
  const later = (...given) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => action(...given), milliseconds);
  };
  later.cancel = () => window.clearTimeout(timer);
  return later;
}
