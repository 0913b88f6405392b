"""The page of a study: many runs that answer one question, read back and shown together."""
