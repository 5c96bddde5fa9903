// Images: pressed, they open in the light box, among those of their group.
import { open } from "./lightbox.js";

document.addEventListener("click", (event) => {
  const frame = event.target.closest(".image-card .frame");
  if (!frame || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(frame.closest(".image-card"));
});
