"""The plug-in "clip-rn50:": the image side of CLIP's ResNet-50."""
