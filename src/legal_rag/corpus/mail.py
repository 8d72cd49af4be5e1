"""E-mail files (.eml) as papers: the fields, and the text without the marks of what it answers."""

import email
import email.policy
from email.message import Message

from legal_rag.corpus.html_page import paper_of_html
from legal_rag.corpus.papers import Paper
from legal_rag.corpus.plain import paper_of_text

FIELDS = {"From": "De", "To": "À", "Cc": "Cc", "Date": "Date", "Subject": "Objet"}
ATTACHED = "La pièce jointe « {} » n'a pas été lue."


def paper_of_mail(data: bytes) -> Paper:
    """Read an e-mail; its attachments are named as unread."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    fields = "\n".join(f"{label} : {message[name]}" for name, label in FIELDS.items() if message[name])
    body = message.get_body(("plain", "html"))
    content = _content(body) if body is not None else ""
    if body is not None and body.get_content_subtype() == "html":
        head, paper = paper_of_text(f"{fields}\n\n"), paper_of_html(content, is_mail=True)
        shift = len(head.text) + 2
        paper = Paper(
            f"{head.text}\n\n{paper.text}",
            tuple(mark._replace(start=mark.start + shift) for mark in paper.places),
            tuple((start + shift, end + shift) for start, end in paper.quoted),
            calls=tuple(mark._replace(start=mark.start + shift) for mark in paper.calls),
        )
    else:
        paper = paper_of_text(f"{fields}\n\n{content}")
    attachments = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    return paper._replace(unread=(*paper.unread, *map(ATTACHED.format, attachments)))


def _content(part: Message) -> str:
    """Decode a part of an e-mail, in its encoding or in that of Windows."""
    data = part.get_payload(decode=True)
    content = data if isinstance(data, bytes) else b""
    try:
        return content.decode(part.get_content_charset("utf-8"))
    except (LookupError, UnicodeDecodeError):
        return content.decode("cp1252", "replace")
