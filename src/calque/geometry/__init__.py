"""Pure mathematics on arrays: neighbours, solvers. No encoder, no files."""
