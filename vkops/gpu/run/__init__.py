"""The execution of plans on a device: programs, the queue, streams and buffers."""
