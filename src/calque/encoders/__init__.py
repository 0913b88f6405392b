"""Encoders: any Hugging Face model, static vectors, aligned encoders, behind one protocol."""
