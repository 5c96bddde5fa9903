"""How the scripted scientist reads, weighs, plans and writes. `workers.backbones.scripted` is its only caller."""
