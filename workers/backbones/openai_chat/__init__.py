"""How a provider is asked for a reply. `workers.backbones.openai` is its only caller."""
