"""The errors that video2pde raises on purpose: each says what is wrong, which value, and what to do."""


class Video2pdeError(Exception):
    """Report a failure that the user can act on; the command line prints it as one line."""

    exit_status = 1


class InputError(Video2pdeError):
    """Report a recording, file or argument that cannot be used (exit status 2)."""

    exit_status = 2


class SettingsError(InputError):
    """Report a setting with an unknown key or a value that is not allowed (exit status 2)."""


class StageError(Video2pdeError):
    """Report that a stage could not finish on valid input (exit status 1)."""
