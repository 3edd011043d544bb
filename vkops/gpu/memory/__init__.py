"""Device memory: heaps and the ranges of them, and what the host has left."""
