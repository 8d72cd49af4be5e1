"""A scripted model that writes questions about whatever it is shown, well or badly, and always in the same way.

What goes wrong is told by a hash of the text shown and by how often it was asked the same, so that a process killed and
begun again meets the same model. Run as a program it serves on a free port, whose address it prints, until its standard
input closes; then it prints how many replies it gave and how long it slept.
"""

import hashlib
import json
import random
import re
import sys

from legal_rag.evaluation.questions.checks import breaks_off
from support.scripted_server import Reply, ScriptedServer, fields

CONTEXT, AFTER_CONTEXT = "[[ ## context ## ]]\n", re.compile(r"\n\n(?:\[\[ ## hint_|Respond with)")
ADVICE = fields(discussion="La réponse n'est pas dans le texte.", advice={"self": "Copie la réponse mot pour mot."})

# Percent of texts, and what the model does about them at first; "always" until the end.
MISCHIEF = {
    "no_json": 4,
    "english": 3,
    "english_always": 3,
    "ungrounded": 4,
    "ungrounded_always": 3,
    "empty": 3,
    "empty_always": 2,
    "429": 4,
    "500": 4,
    "bad_body": 2,
    "cut_off": 3,
    "breaks_off": 2,
    "slow": 3,
}
PASSING = {"429", "500", "bad_body", "breaks_off"}  # nothing was replied: no try is used up


def mischief_of(context: str) -> str:
    """Return what goes wrong with a text, or 'good'."""
    number = int(hashlib.sha256(context.encode()).hexdigest(), 16) % 100
    for kind, share in MISCHIEF.items():
        if number < share:
            return kind
        number -= share
    return "good"


def context_of(prompt: str) -> str | None:
    """Return the text that a prompt shows; None for a request for advice."""
    _, is_shown, rest = prompt.rpartition(CONTEXT)
    return AFTER_CONTEXT.split(rest)[0] if is_shown and "[[ ## advice ## ]]" not in prompt else None


def author(seconds: float = 0.0, slow_seconds: float | None = None, with_mischief: bool = True, stubborn: bool = False):
    """Return the script of a model.

    Args:
        seconds: That each reply takes.
        slow_seconds: That a slow one takes; None: five times as long.
        with_mischief: Whether anything goes wrong.
        stubborn: Whether the same reply is given again until the prompt holds advice.
    """

    def script(prompt: str, attempt: int) -> Reply:
        context = context_of(prompt)
        if context is None:
            return ADVICE._replace(seconds=seconds)
        kind = mischief_of(context) if with_mischief else "good"
        reply = good_reply(context)
        if kind == "slow":
            return reply._replace(seconds=slow_seconds if slow_seconds is not None else 5 * seconds)
        first = "[[ ## hint_ ## ]]" not in prompt if stubborn and kind not in PASSING else attempt == 0
        if kind.endswith("_always") or first:
            reply = _spoilt(kind.removesuffix("_always"), reply, context)
        return reply._replace(seconds=seconds)

    return script


def good_reply(context: str) -> Reply:
    """Reply with words of the text, and a question that names its matter."""
    draw = random.Random(context)
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", context)]
    at = draw.randrange(max(1, len(words) - 20))
    start, end = words[at][0], words[min(at + 6, len(words) - 1)][1]
    matter = " ".join(re.findall(r"[^\W\d_]{5,}", context[end:] + context)[:4])
    answer = context[start:end][:90].rstrip()
    while breaks_off(answer) and " " in answer:
        answer = answer.rpartition(" ")[0].rstrip()
    number = hashlib.sha256(context.encode()).hexdigest()[:6]
    return fields(
        summary="Le juge examine la demande et se prononce sur les griefs qui lui sont soumis par les parties.",
        main_topic="Le sujet du litige",
        question=f"Quelle règle le juge retient-il pour {matter.lower()} dans le dossier {number} ?",
        answer=answer,
        language="français",
    )


def _spoilt(kind: str, reply: Reply, context: str) -> Reply:
    if kind in ("429", "500"):
        return Reply(status=int(kind), raw_body=json.dumps({"error": {"message": "later", "type": "server"}}))
    if kind == "english":
        english = "Which rule does the court apply to the claim of the applicant?"
        return Reply(re.sub(r"Quelle règle .*\?", english, reply.content))
    if kind == "ungrounded":
        return Reply(
            re.sub(r"(?<=## answer ## \]\]\n).*?(?=\n\n\[\[)", "zéro virgule rien", reply.content, flags=re.DOTALL)
        )
    return {
        "no_json": Reply('{"question": "Quelle'),
        "empty": Reply(""),
        "bad_body": Reply(raw_body="<html>not JSON</html>"),
        "cut_off": Reply(reply.content[: len(reply.content) // 2], finish_reason="length"),
        "breaks_off": reply._replace(breaks_off=True),
    }.get(kind, reply)


if __name__ == "__main__":
    with ScriptedServer(author(float(sys.argv[1]), stubborn=sys.argv[2:] == ["stubborn"])) as server:
        print(server.api_base, flush=True)
        sys.stdin.read()
        print(json.dumps({"requests": len(server.prompts), "slept": server.slept}), flush=True)
