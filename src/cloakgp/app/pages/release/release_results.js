// All there is about a release. Fills `root`, and gives how to clean up.

import { noiseTiles } from "../noise/noise_tiles.js";
import { fill, h } from "../ui/dom.js";
import { note } from "../ui/notes.js";
import { tip } from "../ui/tip.js";
import { askForm } from "./ask_form.js";
import { densityCard } from "./density_card.js";
import { downloads } from "./downloads.js";
import { learnedCard } from "./learned_card.js";
import { moreCard } from "./more_card.js";
import { pictureCard } from "./picture_card.js";
import { promises } from "./promises.js";
import { receiptLine } from "./receipt_line.js";
import { settingsFacts } from "./settings_facts.js";

const INSECURE =
  "INSECURE: the noise came from a known seed. Nothing is promised to anyone. Do not publish this.";

function modelCheck(found) {
  return found ? note(found.fits ? "good" : "warn", h("p", {}, found.words)) : null;
}

export function releaseResults(root, release) {
  const { settings, certificate } = release;
  const files = downloads(release.id);
  const picture = pictureCard(release, files.follow);
  const density = densityCard(release);
  fill(
    root,
    certificate.insecure ? note("bad", h("p", {}, INSECURE)) : null,
    picture,
    modelCheck(release.model_check),
    density,
    learnedCard(release),
    h("div", { class: "columns" }, askForm(release, picture.show), files),
    moreCard(release),
    promises(release),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "How much noise privacy took", tip("noise std")),
      release.summary ? noiseTiles(release.summary) : null,
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Settings", tip("certificate")),
      settingsFacts(settings, certificate),
      receiptLine(release.receipt),
    ),
  );
  picture.show();
  return () => {
    picture.done();
    density?.done();
  };
}
