"""Likeness: which memories say the same, or the same with another value, found without comparing all with all."""
