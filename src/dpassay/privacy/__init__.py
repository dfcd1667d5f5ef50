"""What privacy is: claims, curves and the notions of a finite pair. No samples in this room."""
