"""The other end of the wire: the Memory Access Service itself, embedded and real."""
