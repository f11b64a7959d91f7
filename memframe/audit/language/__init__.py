"""Language: what words, spellings and sentences say by themselves, whatever else a store holds."""
