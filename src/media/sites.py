# Gain: the first URL of a process costs 160 ms of CPU where all patterns compiled cost 600 (`make bench BENCH=machine`).
"""Compiles the pattern of a site only for a URL with the texts that the pattern needs.

yt-dlp asks 1,750 sites in turn whether a URL is theirs, and compiles the pattern of each before it asks. Run as a program, this file
lists the needs of all patterns and keeps them beside yt-dlp: listing them anew would cost each process 60 ms of CPU."""
import json
import os
import pathlib
import re
import sys

from yt_dlp.utils import variadic

KEPT = pathlib.Path(sys.prefix, 'site-needs.json')

COMMENT = r'\(\?\#(?:\\.|[^)\\])*\)'
TOKEN = r"""(?P<plain>[a-zA-Z0-9/:;=&%@~_,!<>"'`-]+)|\\(?P<escaped>[^a-zA-Z0-9\x80-\U0010ffff])|(?P<times>[*?]|\{\d*,?\d*\})"""
TOKEN += r'|(?P<open>\((?:\?(?:<?[=!]|P<\w+>|P=\w+|[a-zA-Z-]*:))?(?!\?))|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<other>\\.|.)'
TOKENS = re.compile(rf'(?P<nothing>{COMMENT})|{TOKEN}', re.DOTALL)
# In a verbose pattern, white space and comments up to the end of a line mean nothing either.
VERBOSE_TOKENS = re.compile(rf'(?P<nothing>[ \t\n\r\v\f]+|\#(?:\\.|[^\n\\])*|{COMMENT})|{TOKEN}', re.DOTALL)
FLAGS = re.compile(r'\s*\(\?([a-zA-Z]+)\)')
# Only its own part of a pattern is verbose.
VERBOSE_GROUP = re.compile(r'\(\?[a-zA-Z-]*x[a-zA-Z-]*:')
# Escapes that stand for no text of their own. Another one may include the digits after it, such as \x41.
CLASSES = frozenset(f'\\{letter}' for letter in 'dDsSwWbBAZ')
LOOKS = ('(?=', '(?!', '(?<=', '(?<!')
ANYTHING = ((),)
# Deeper groups would reach Python's limit of recursion.
MAX_DEPTH = 50
# Searching texts in a long URL takes longer than compiling.
MAX_LENGTH = 500


class LazyPattern:
    """Matches as the compiled pattern does."""

    def __init__(self, pattern, needs=None):
        self.pattern, self.needs, self.compiled = pattern, needs, None

    def match(self, url):
        if self.compiled is None:
            self.needs = self.needs or list_needs(self.pattern)
            # Beyond ASCII, capital and small letters come in more than pairs.
            if len(url) <= MAX_LENGTH and url.isascii() and not has(url.lower(), self.needs):
                return None
            self.compiled = re.compile(self.pattern)
        return self.compiled.match(url)


def compile_lazily(extractors):
    """Gives the extractors patterns that are compiled for the first URL that they may match."""
    kept = read_kept()
    for extractor in extractors:
        patterns = variadic(extractor._VALID_URL)
        if all(isinstance(each, str) for each in patterns):
            # yt-dlp looks for the compiled patterns of an extractor here.
            extractor._VALID_URL_RE = tuple(LazyPattern(each, kept.get(each)) for each in patterns)


def keep(extractors):
    """Writes the needs of all patterns, with the text of this file, which lists them."""
    patterns = {each for extractor in extractors for each in variadic(extractor._VALID_URL) if isinstance(each, str)}
    unfinished = KEPT.with_suffix(f'.{os.getpid()}')
    unfinished.write_text(json.dumps([own_text(), {each: list_needs(each) for each in sorted(patterns)}]), encoding='utf-8')
    unfinished.replace(KEPT)


def read_kept():
    """Returns the needs of patterns that were kept; none when another text of this file listed them. Other patterns are listed when asked."""
    try:
        text, needs = json.loads(KEPT.read_bytes())
    except (OSError, ValueError):
        return {}
    return needs if text == own_text() else {}


def own_text():
    return pathlib.Path(__file__).read_text(encoding='utf-8')


def has(url, needs):
    """Returns true when the URL has all that one of the branches needs."""
    for branch in needs:
        for each in branch:
            if not (each in url if isinstance(each, str) else has(url, each)):
                break
        else:
            return True
    return False


def list_needs(pattern):
    """Returns the branches of a pattern: each has the texts, in small letters, and the groups that it requires."""
    if VERBOSE_GROUP.search(pattern):
        return ANYTHING
    flags = FLAGS.match(pattern)
    tokens = VERBOSE_TOKENS if flags and 'x' in flags[1] else TOKENS
    # Groups that are open, outermost first: how each begins, and its branches.
    groups = [('', [['']])]
    for token in tokens.finditer(pattern, flags.end() if flags else 0):
        kind, said, branches = token.lastgroup, token[0], groups[-1][1]
        if kind == 'nothing':
            continue
        if kind == 'open' and len(groups) < MAX_DEPTH:
            groups.append((said, [['']]))
        elif said == ')' and len(groups) > 1:
            begin, inner = groups.pop()
            groups[-1][1][-1].append('' if begin in LOOKS else prune(inner))
        elif said == '|':
            branches.append([''])
        elif kind in ('plain', 'escaped'):
            add(branches[-1], token[kind])
        elif kind == 'open' or said in '()' or kind == 'other' and said[0] == '\\' and said not in CLASSES:
            return ANYTHING
        else:
            if kind == 'times':
                drop_last(branches[-1])
            branches[-1].append('')
    return prune(groups[0][1])


def add(branch, text):
    if isinstance(branch[-1], str):
        branch[-1] += text
    else:
        branch.append(text)


def drop_last(branch):
    """Leaves out the character or the group at the end, which need not be there."""
    branch[-1] = branch[-1][:-1] if isinstance(branch[-1], str) else ''


def prune(branches):
    """Returns branches without what nearly every URL has; one branch that needs nothing else makes the others needless."""
    needed = tuple(
        tuple(each.lower() if isinstance(each, str) else each for each in branch if each != ANYTHING and not is_everywhere(each))
        for branch in branches
    )
    return needed if all(needed) else ANYTHING


def is_everywhere(each):
    return isinstance(each, str) and (len(each) < 2 or each in 'https://')


if __name__ == '__main__':
    from yt_dlp.extractor import gen_extractor_classes
    keep(gen_extractor_classes())
