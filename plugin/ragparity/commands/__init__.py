"""The commands of the command line, one file each; `ragparity.cli` puts them together."""
