"""Public path of what `legal_rag.citations` does for any text: check all that it refers to against a Library."""

from legal_rag.citations import CitedSource as CitedSource
from legal_rag.citations import Correction as Correction
from legal_rag.citations import Nearest as Nearest
from legal_rag.citations import Reference as Reference
from legal_rag.citations import Status as Status
from legal_rag.citations import ToRead as ToRead
from legal_rag.citations import Verification as Verification
from legal_rag.citations import comment_of as comment_of
from legal_rag.citations import format_verification as format_verification
from legal_rag.citations import render_verification as render_verification
from legal_rag.citations import show_verification as show_verification
from legal_rag.citations import verify_text as verify_text
