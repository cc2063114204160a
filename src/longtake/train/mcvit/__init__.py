"""MC-ViT trained from nothing on Toybox: short clips first, then the order of moves over whole videos."""
