"""The plug-in "clip-rn50:": the image encoder of CLIP's ResNet-50."""
