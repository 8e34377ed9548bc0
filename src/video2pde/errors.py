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


def missing_package(module: str) -> str:
    """Say in one line which package is not installed, and how to install it."""
    name = module.split(".")[0]
    package = {"PIL": "pillow", "tomli_w": "tomli-w"}.get(name, name)
    return f"this needs the package {package}, which is not installed here: python -m pip install {package}"


def printable(text: str) -> str:
    """Write out what a terminal would obey or could not show: escape codes, and bytes of names that are no UTF-8."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else _escape(sign) for sign in text)


def _escape(sign: str) -> str:
    r"""Write a sign as \uXXXX, which JSON reads too."""
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))
