"""Transfer: train a task on one language, test it on others."""
