// Compare: the heads of the runs stay above their columns while the sheet is moved sideways.
import "../display/images.js";

const heads = document.getElementById("heads");
const sheet = document.getElementById("beside");

function follow(leader, other) {
  leader.addEventListener("scroll", () => {
    if (Math.abs(other.scrollLeft - leader.scrollLeft) > 1) other.scrollLeft = leader.scrollLeft;
  }, { passive: true });
}

// On a phone the sheet snaps to a run, so it alone leads there.
follow(sheet, heads);
if (!matchMedia("(max-width: 700px)").matches) follow(heads, sheet);

function measure() {
  document.documentElement.style.setProperty("--head-height", `${heads.offsetHeight}px`);
}
new ResizeObserver(measure).observe(heads);
measure();
