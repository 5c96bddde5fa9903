// The graph of a circuit: the pointer or the focus on a member lights up the lines that come from it or lead to it.

function light(graph, node) {
  graph.classList.toggle("is-lit", node !== null);
  for (const line of graph.querySelectorAll("[data-from]")) {
    line.classList.toggle("lit", node !== null && [line.dataset.from, line.dataset.to].includes(node.dataset.node));
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

// On the document, since the drawing comes anew when it was measured
for (const name of ["pointerover", "focusin"]) document.addEventListener(name, show);
for (const name of ["pointerout", "focusout"]) document.addEventListener(name, hide);
