"""A small sentence-embedding model as transformers saves it, which tells words apart by chance."""

from __future__ import annotations

from pathlib import Path

import torch

from workers.functions.words.relations import RULES
from workers.functions.words.topics import TOPICS


def save_encoder(folder: Path) -> Path:
    """An encoder with random weights and a vocabulary of whole words."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = {*TOPICS, *(word for listed in TOPICS.values() for word in listed)}
    words |= {
        word.casefold() for rule in RULES for pair in rule.pairs.items() for text in pair for word in text.split()
    }
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    BertModel(BertConfig(vocab_size=len(vocabulary), **sizes)).save_pretrained(folder)
    return folder
