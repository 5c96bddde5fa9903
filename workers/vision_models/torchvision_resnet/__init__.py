"""The plug-in "torchvision:": ResNets of torchvision."""
