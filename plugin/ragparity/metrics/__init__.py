"""The native metrics, one file each or one per close family. A file dropped here is registered."""
