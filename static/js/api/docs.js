// The API's page: operations that only read can be tried with the user's session; a link to an operation opens it.
function offer() {
  for (const form of document.querySelectorAll(".try")) form.hidden = false;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches(".try")) return;
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    show(form.querySelector("output"), await fetch(address(form), { headers: { Accept: "application/json" } }));
  } catch {
    form.querySelector("output").textContent = "The server did not answer. Try again once it is there.";
  } finally {
    button.disabled = false;
  }
});

// Parameters and responses of an operation are loaded when it is opened.
document.addEventListener("toggle", async ({ target }) => {
  const link = target.open && target.querySelector("[data-inside]");
  if (!link) return;
  await htmx.ajax("GET", link.getAttribute("href").split("#")[0], { target: link.closest(".operation-body"), swap: "innerHTML" });
  offer();
}, true);

function address(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const input of form.elements) {
    if (!input.name || !input.value) continue;
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else query.set(input.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

async function show(output, response) {
  const text = await response.text();
  const head = document.createElement("span"), body = document.createElement("pre");
  head.className = "muted";
  head.textContent = `${response.status} ${response.statusText} · ${response.headers.get("Content-Type")}`;
  body.tabIndex = 0;
  try { body.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { body.textContent = text; }
  output.replaceChildren(head, body);
}

function open() {
  const found = document.getElementById(location.hash.slice(1));
  if (found?.matches("details")) found.open = true;
}

addEventListener("hashchange", open);
offer();
open();
