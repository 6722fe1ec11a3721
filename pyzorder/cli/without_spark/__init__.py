"""Commands that need neither Spark nor Java."""
