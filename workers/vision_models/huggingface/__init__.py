"""The plug-in "hf:": any image model of transformers."""
