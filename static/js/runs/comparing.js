// Compare: the heads of the runs stay above their columns while the table scrolls sideways.
import "../display/images.js";

const heads = document.getElementById("heads");
const sheet = document.getElementById("beside");

function follow(leader, other) {
  leader.addEventListener("scroll", () => {
    if (Math.abs(other.scrollLeft - leader.scrollLeft) > 1) other.scrollLeft = leader.scrollLeft;
  }, { passive: true });
}

// On a phone the table snaps to a run, so only the table is scrolled.
follow(sheet, heads);
if (!matchMedia("(max-width: 700px)").matches) follow(heads, sheet);

function measure() {
  document.documentElement.style.setProperty("--head-height", `${heads.offsetHeight}px`);
}
new ResizeObserver(measure).observe(heads);
measure();
