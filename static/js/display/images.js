// Open a pressed image in the light box, among those of its group.
import { open } from "./lightbox.js";

document.addEventListener("click", (event) => {
  const frame = event.target.closest(".image-card .frame");
  if (!frame || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(frame.closest(".image-card"));
});
