"""Puts functions of trawl in the places of yt-dlp's own: a version that has moved one of them must not go on without it."""
import yt_dlp.version


class Unfit(Exception):
    """This version of yt-dlp is none that trawl knows how to use."""


def put(owner, **own):
    """Replaces attributes of a class or module."""
    require(owner, *own)
    for name, value in own.items():
        setattr(owner, name, value)


def require(owner, *names):
    """Raises for a class or module without attributes of these names."""
    for name in names:
        if not hasattr(owner, name):
            version = yt_dlp.version.__version__
            raise Unfit(f'yt-dlp {version} has no {owner.__name__}.{name}, which trawl replaces: use the version that src/media/requirements.txt names')
