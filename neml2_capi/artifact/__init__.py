"""The files of an artifact, as far as they tell without being loaded."""
