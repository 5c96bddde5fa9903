"""Parts of the plug-in `clip_rn50`: its network, and the files its weights come in."""
