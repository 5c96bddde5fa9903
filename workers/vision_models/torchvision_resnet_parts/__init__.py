"""Parts of the plug-in `torchvision_resnet`: its network, and the files its weights come in."""
