"""What the patterns of French legal text have in common: blanks, dashes, where a name may begin and end."""

DASH = "[-\u2010-\u2014]"
BLANK = r"[ \t\u00a0\u202f]"
GAP, SPACE = f"{BLANK}{{0,4}}", f"{BLANK}{{1,4}}"  # bounded: a page of blanks is no reason to search it again and again
NOT_INSIDE = r"(?<![\w/.-])"  # a longer number or word
NO_MORE = rf"(?![\w/]|{DASH}\d|\.\d)"
