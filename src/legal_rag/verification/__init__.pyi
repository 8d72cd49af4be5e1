from .page import format_verification as format_verification
from .page import render_verification as render_verification
from .page import show_verification as show_verification
from .verdicts import Correction as Correction
from .verdicts import Nearest as Nearest
from .verdicts import Reference as Reference
from .verdicts import Verification as Verification
from .verdicts import verify_text as verify_text
