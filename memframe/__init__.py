"""The memories of an AI as pandas DataFrames: load, audit, plan, write back, undo."""
