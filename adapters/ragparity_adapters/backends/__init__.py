"""Other frameworks' metrics. A file dropped here is a framework."""
