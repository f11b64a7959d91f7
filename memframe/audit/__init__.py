"""The audit: what is wrong with the memories, with evidence, and what could be done about it."""
