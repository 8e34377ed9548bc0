"""The run folder: artefacts on disk with the key they were made under, a lock, a log, and what is shown meanwhile."""
