"""Parts of the plug-in `huggingface`: finding and loading checkpoints, preparing images, reading layers."""
