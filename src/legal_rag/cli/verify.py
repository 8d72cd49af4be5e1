"""The command that checks any text against a Library."""

from pathlib import Path

import click

from legal_rag.cli.options import open_library, place_options, print_json


@click.command("verify")
@place_options
@click.argument("file", metavar="FILE")
@click.option("--html", metavar="PAGE", help="Write the text with its verdicts in the margins as one page.")
def verify_command(file: str, index_folder: str, index_name: str, as_json: bool, html: str | None) -> int:
    """Check every decision, article and quotation of FILE (Markdown, text, HTML, DOCX, PDF) against a Library.

    Status 0: nothing is wrong; 1: a reference is wrong; 2: the text could not be checked, or not all of it.
    """
    from legal_rag.cli.ask import page_to_write, write_page
    from legal_rag.verification.page import format_verification, render_verification
    from legal_rag.verification.reading import read_text
    from legal_rag.verification.verdicts import verify_text

    page = page_to_write(html)
    library = open_library(index_folder, index_name)
    verification = verify_text(read_text(file), library)
    if as_json:
        print_json({"file": file, **verification.to_json()})
    else:
        click.echo(format_verification(verification))
    if page:
        write_page(page, render_verification(verification, Path(file).name))
    return verification.status
