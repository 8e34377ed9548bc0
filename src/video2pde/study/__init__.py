"""Many recordings: one law for all, or the news that there is none. ``docs/many-recordings.md`` is the way in.

The way of the data, a module each: ``plan`` (study.toml), ``films`` (each an ordinary run), ``structure`` (weak systems
stacked), ``own`` and ``joint`` (calibration with a shared law), ``choice`` (frozen before the test windows),
``equality``, ``meta`` and ``trends`` (is it one law?), ``prediction`` (leave one out, transfer), ``order`` (the steps),
``result``, ``tables`` and ``page``. ``specifications`` and ``sensitivity``: one film under many settings.
"""
