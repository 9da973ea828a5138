// Earlier releases that are taken into account, as links.

import { link } from "../ui/buttons.js";

export function given(ids) {
  return ids.map((id, place) => [
    place ? ", " : null,
    link(ids.length > 1 ? `an earlier release (${place + 1})` : "an earlier release", `#/releases/${encodeURIComponent(id)}`),
  ]);
}
