"""PDF files written by hand."""

from collections.abc import Sequence


def pdf_of(objects: Sequence[bytes]) -> bytes:
    """Put the objects of a PDF together, the catalogue first."""
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj%b endobj\n" % (number, body)
    table = b"0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(data))
    return data + b"xref\n0 %d\n" % (len(objects) + 1) + table + trailer


def pdf_of_a_page(stream: bytes, *, pages: bytes = b"[3 0 R]", more: bytes = b"") -> bytes:
    """Write a page that draws a stream with a font F1; the list of pages and what describes the stream may lie."""
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids%b/Count 1>>" % pages,
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
            b"<</Length %d%b>>stream\n%b\nendstream" % (len(stream), more, stream),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        ]
    )
