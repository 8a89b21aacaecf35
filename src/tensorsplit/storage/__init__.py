"""Files that are not trusted are read here, and output files are written whole or not at all."""
