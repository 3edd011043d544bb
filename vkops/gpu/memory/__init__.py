"""Device memory: heaps, the ranges allocated from them, and the memory available on the host."""
