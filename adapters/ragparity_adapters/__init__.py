"""Judges, embedders, field names and other frameworks, behind the ports of `ragparity.core`."""
