// Links to places of a transcript: shown at once if they are drawn, else requested from the server.

const ASKED = { e: "at", "event-": "at", "round-": "round", "experiment-": "experiment" };

// The address from which the server draws a place; "" for an unknown place.
function address(hash) {
  const [, kind, number] = hash.match(/^#(e|event-|round-|experiment-)(\d+)$/) || [];
  if (!kind) return "";
  const query = `?${ASKED[kind]}=${number}`;
  return location.search === query ? "" : `${query}#${kind === "event-" ? "e" : kind}${number}`;
}

function here(link) {
  const there = new URL(link.href, location.href);
  const tab = new URLSearchParams(there.search).has("tab");
  return there.pathname === location.pathname && there.hash && !tab ? document.getElementById(there.hash.slice(1)) : null;
}

function lost(page) {
  if (page.querySelector("#events") && location.hash && !document.getElementById(location.hash.slice(1))) {
    const next = address(location.hash);
    if (next) location.replace(location.pathname + next);
  }
}

// Keep the linked place at the top of the window until the reader scrolls: elements above it that are drawn later may
// be higher than expected, and browsers do not always compensate for that.
let leave = null;

function stay(page) {
  leave?.();
  const events = page.querySelector("#events");
  const place = events && location.hash ? document.getElementById(location.hash.slice(1)) : null;
  if (!place) return;
  let top = 0, depth = 0;  // of the place, pixels from the top of the window and of the page
  const back = () => {
    place.scrollIntoView({ behavior: "instant" });
    top = place.getBoundingClientRect().top;
    depth = top + scrollY;
  };
  const scrolled = () => {
    const now = place.getBoundingClientRect().top;
    if (Math.abs(now + scrollY - depth) > 2) back();  // the page grew, or something else scrolled it
    else if (Math.abs(now - top) > 2) leave?.();
  };
  const drawn = new ResizeObserver(back);
  leave = () => {
    drawn.disconnect();
    removeEventListener("scroll", scrolled);
    leave = null;
  };
  back();
  drawn.observe(events);
  addEventListener("scroll", scrolled, { passive: true });
}

export function answer(page) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || !page.querySelector("#events")) return;
    if (!here(link)) return;
    event.preventDefault();
    const address = link.href;
    location.hash = new URL(address).hash;
    history.replaceState(history.state, "", address);
  });
  addEventListener("hashchange", () => { lost(page); stay(page); });
  lost(page);
  if (performance.getEntriesByType("navigation")[0]?.type === "navigate") stay(page);  // otherwise the browser restores the place
}
