"""Text with labels to learn tasks from: what items are, and the files people have them in."""
