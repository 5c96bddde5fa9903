// The graph of a circuit: pointing at a member, or focusing it, highlights the lines from it and to it.

function light(graph, node) {
  graph.classList.toggle("has-highlight", node !== null);
  for (const line of graph.querySelectorAll("[data-from]")) {
    line.classList.toggle("highlighted", node !== null && [line.dataset.from, line.dataset.to].includes(node.dataset.node));
  }
}

function show(event) {
  const graph = event.target.closest?.("svg.graph");
  if (graph) light(graph, event.target.closest("[data-node]"));
}

function hide(event) {
  const graph = event.target.closest?.("svg.graph");
  if (graph && !graph.contains(event.relatedTarget)) light(graph, graph.querySelector("[data-node]:focus"));
}

// On the document, because htmx replaces the drawing once it has been measured.
for (const name of ["pointerover", "focusin"]) document.addEventListener(name, show);
for (const name of ["pointerout", "focusout"]) document.addEventListener(name, hide);
