"""The vocabulary: samples, outcomes, prompts, ports, policies, errors. Standard library only at run time."""
