"""Asking a model: retries, budgets, and a throttle that the requests of one run share."""

import threading
import time

import pytest
from support.scripted_server import Reply, ScriptedServer

from legal_rag.base import deadline
from legal_rag.llm import (
    Budget,
    BudgetExceededError,
    Endpoint,
    ModelError,
    Throttle,
    Usage,
    UsageTracker,
    ask,
    endpoint_of,
)

BUSY = Reply(status=503, raw_body="{}", headers=(("Retry-After", "0"),))
GOOD = Reply("Oui")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("legal_rag.llm.asking.FIRST_WAIT", 0.01)


def endpoint(server, **settings):
    own = {"num_retries": 0, "cache": False, "timeout": 20.0} | settings
    return Endpoint(model="openai/m", name="m", api_base=server.api_base, **own)


def said(server, text="Bonjour ?", *, tracker=None, throttle=None, **settings):
    messages = [{"role": "user", "content": text}]
    return ask(endpoint(server, **settings), messages, tracker=tracker, throttle=throttle)


# --- retries


def test_a_failed_request_is_made_again_as_often_as_the_model_is_set_to():
    with ScriptedServer(lambda prompt, attempt: BUSY if attempt < 2 else GOOD) as server:
        done = said(server, num_retries=2)
        assert (done.text, done.usage.calls) == ("Oui", 3)
    failed = pytest.raises(ModelError, match=r"the server failed \(503\)")
    with ScriptedServer(lambda prompt, attempt: BUSY if attempt < 2 else GOOD) as server, failed:
        said(server, num_retries=1)


@pytest.mark.parametrize("status", [400, 401, 402, 404, 413, 422])
def test_what_is_wrong_with_the_request_itself_is_not_asked_again(status):
    with ScriptedServer(lambda prompt, attempt: Reply(status=status, raw_body="{}")) as server:
        tracker = UsageTracker(Budget())
        with pytest.raises(ModelError):
            said(server, num_retries=5, tracker=tracker)
        assert (len(server.prompts), tracker.usage) == (1, Usage(calls=1))


def test_a_server_that_asks_to_wait_is_asked_again_after_that():
    busy = Reply(status=429, raw_body="{}", headers=(("Retry-After", "0.2"),))
    with ScriptedServer(lambda prompt, attempt: busy if attempt == 0 else GOOD) as server:
        started = time.monotonic()
        assert said(server, num_retries=1).text == "Oui"
        assert time.monotonic() - started >= 0.2


def test_nobody_waits_beyond_the_deadline():
    busy = Reply(status=429, raw_body="{}", headers=(("Retry-After", "60"),))
    with ScriptedServer(lambda prompt, attempt: busy) as server:
        started = time.monotonic()
        with deadline.within(5), pytest.raises(ModelError, match="too many requests"):
            said(server, num_retries=5)
        with pytest.raises(ModelError, match="too many requests"):
            said(server, num_retries=5, tracker=UsageTracker(Budget(seconds=5)))
        assert time.monotonic() - started < 30
        assert len(server.prompts) == 2


def test_a_reply_that_took_too_long_is_not_asked_for_again():
    with ScriptedServer(lambda prompt, attempt: Reply(hangs=True)) as server:
        with pytest.raises(ModelError, match="no reply in time"):
            said(server, num_retries=5, timeout=0.5)
        assert len(server.prompts) == 1


# --- slots of a server


class Counting(ScriptedServer):
    """Replies after a while, and keeps how many requests were under way at most."""

    def __init__(self, pages=None):
        super().__init__(lambda prompt, attempt: GOOD, pages)
        self.most, self._under_way, self._counting = 0, 0, threading.Lock()

    def reply(self, request):
        with self._counting:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        time.sleep(0.05)
        with self._counting:
            self._under_way -= 1
        return super().reply(request)


def asked_in_threads(server, n, **settings):
    replies, failures = [], []

    def work(number):
        try:
            replies.append(said(server, str(number), **settings).text)
        except (ModelError, BudgetExceededError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies, failures


@pytest.mark.parametrize(("slots", "workers", "most"), [(1, None, 1), (2, None, 2), (2, 1, 1), (1, 8, 1), (None, 2, 2)])
def test_no_more_requests_are_under_way_than_a_server_has_slots_or_workers_are_asked_for(slots, workers, most):
    with Counting({"/props": {"total_slots": slots}}) as server:
        replies, failures = asked_in_threads(server, 4, is_own=True, workers=workers)
    assert (replies, failures, server.most) == (["Oui"] * 4, [], most)


def test_the_time_that_a_request_waits_for_a_slot_is_not_the_replys():
    with Counting({"/props": {"total_slots": 1}}) as server:
        replies, failures = asked_in_threads(server, 24, is_own=True, timeout=1.0)  # all take 1.2 s
    assert (len(replies), failures) == (24, [])


def test_nobody_waits_for_a_slot_beyond_the_budget():
    with ScriptedServer(lambda *_: Reply(hangs=True), {"/props": {"total_slots": 1}}) as server:
        replies, failures = asked_in_threads(server, 3, is_own=True, tracker=UsageTracker(Budget(seconds=0.3)))
        assert (replies, len(failures), len(server.prompts)) == ([], 3, 1)
    assert all("0,3 seconde" in str(failure) for failure in failures)


# --- roles


@pytest.mark.parametrize(
    ("roles", "sent"),
    [
        ("su", [("system", "0"), ("user", "1")]),
        ("suu", [("system", "0"), ("user", "1\n\n2")]),
        ("suauu", [("system", "0"), ("user", "1"), ("assistant", "2"), ("user", "3\n\n4")]),
        ("ssu", [("system", "0\n\n1"), ("user", "2")]),
        ("sus", [("system", "0"), ("user", "1\n\n2")]),
        ("uas", [("user", "0"), ("assistant", "1"), ("user", "2")]),
    ],
)
def test_neighbours_of_one_role_are_sent_as_one_and_later_system_texts_as_the_users(roles, sent):
    names = {"s": "system", "u": "user", "a": "assistant"}
    with ScriptedServer(lambda *_: GOOD) as server:
        messages = [{"role": names[role], "content": str(place)} for place, role in enumerate(roles)]
        ask(endpoint(server), messages)
    (request,) = server.requests
    assert [(message["role"], message["content"]) for message in request["messages"]] == sent


# --- budgets


def test_a_limit_is_reached_when_all_of_it_is_used():
    budget = Budget(model_calls=2, tokens=10, seconds=5, cost=1.0)
    assert budget.reached(Usage(1, 0, 4, 5, 0.99), 4.9) is None
    assert budget.reached(Usage(2), 0) == "model_calls"
    assert budget.reached(Usage(1, 9, 5, 5), 0) == "tokens"
    assert budget.reached(Usage(), 5) == "seconds"
    assert budget.reached(Usage(1, cost=1.0), 0) == "cost"
    assert Budget().reached(Usage(1, cost=None), 0) is None


@pytest.mark.parametrize("limits", [{"steps": 0}, {"model_calls": -1}, {"seconds": 0.0}, {"cost": 0.0}])
def test_a_budget_of_nothing_is_refused(limits):
    (name,) = limits
    with pytest.raises(ValueError, match=f"a budget's {name} must be above 0"):
        Budget(**limits)


def test_the_last_reply_may_go_beyond_the_tokens_and_is_said_to_have():
    with ScriptedServer(lambda prompt, attempt: GOOD) as server:
        tracker = UsageTracker(Budget(tokens=3))
        said(server, tracker=tracker)
        said(server, tracker=tracker)  # two tokens each, as the server counts
        with pytest.raises(BudgetExceededError, match=r"3 jetons lus et écrits \(4 avec la dernière réponse\)$"):
            said(server, tracker=tracker)
        assert (len(server.prompts), tracker.usage.tokens) == (2, 4)


def test_dollars_are_counted_where_the_price_is_listed_and_nothing_is_asked_where_it_is_not():
    with ScriptedServer(lambda prompt, attempt: GOOD) as server:
        tracker, model = (
            UsageTracker(Budget(cost=1e-7)),
            endpoint_of("openai/gpt-4o-mini", "k", server.api_base, cache=False),
        )
        assert ask(model, [{"role": "user", "content": "?"}], tracker=tracker).usage.cost == pytest.approx(0.75e-6)
        with pytest.raises(BudgetExceededError, match="0 dollar .0,000001 avec la dernière réponse."):
            ask(model, [{"role": "user", "content": "?"}], tracker=tracker)
        with pytest.raises(BudgetExceededError, match="le prix de ce modèle est inconnu"):
            said(server, tracker=UsageTracker(Budget(cost=1.0)))
        assert len(server.prompts) == 1


def test_threads_do_not_make_more_requests_than_the_budget_has_calls():
    with ScriptedServer(lambda prompt, attempt: GOOD._replace(seconds=0.1)) as server:
        tracker = UsageTracker(Budget(model_calls=3))
        _, refused = asked_in_threads(server, 8, tracker=tracker)
        assert (len(server.prompts), len(refused), tracker.usage.calls) == (3, 5, 3)


def test_a_budgets_seconds_and_a_deadline_end_a_request():
    with ScriptedServer(lambda prompt, attempt: Reply(hangs=True)) as server:
        with pytest.raises(BudgetExceededError, match="0,2 seconde"):
            said(server, tracker=UsageTracker(Budget(seconds=0.2)), num_retries=5)
        with deadline.within(0.2), pytest.raises(deadline.DeadlineError):
            said(server, num_retries=5)


# --- the throttle


def test_requests_keep_the_rate():
    with ScriptedServer(lambda *_: GOOD) as server:
        throttle, started = Throttle(per_minute=1200), time.monotonic()
        for number in range(5):
            said(server, f"Question {number}", throttle=throttle)
        assert time.monotonic() - started >= 0.2
    with pytest.raises(ValueError, match="requests_per_minute must be above 0, got 0"):
        Throttle(per_minute=0)


def test_no_more_requests_are_under_way_than_allowed():
    with Counting() as server:
        replies, _ = asked_in_threads(server, 8, throttle=Throttle(at_once=2))
    assert (len(replies), server.most) == (8, 2)


@pytest.mark.parametrize("status", [401, 402, 404])
def test_an_error_that_every_request_will_meet_stops_them_all(status):
    with ScriptedServer(lambda *_: Reply(status=status, raw_body="{}")) as server:
        throttle = Throttle()
        for _ in range(3):
            with pytest.raises(ModelError, match=str(status)):
                said(server, throttle=throttle)
        assert (throttle.is_stopped, len(server.prompts)) == (True, 1)


def test_failures_in_a_row_stop_them_all_and_a_success_forgets_them():
    refused = Reply(status=400, raw_body="{}")
    with ScriptedServer(lambda prompt, _: GOOD if prompt == "bon" else refused) as server:
        throttle = Throttle(most_failures=3)
        for text in ("a", "b", "bon", "c", "d"):
            try:
                said(server, text, throttle=throttle)
            except ModelError:
                assert not throttle.is_stopped
        for _ in range(2):
            with pytest.raises(ModelError):
                said(server, "e", throttle=throttle)
        assert throttle.is_stopped
        assert len(server.prompts) == 6


def test_an_address_that_was_never_reached_stops_them_all_soon():
    with ScriptedServer(lambda *_: GOOD) as server:
        pass
    throttle, started = Throttle(attempts=500), time.monotonic()
    with pytest.raises(ModelError, match="the server does not answer"):
        said(server, throttle=throttle)
    assert throttle.is_stopped
    assert time.monotonic() - started < 30


def test_a_stop_wakes_those_that_wait_to_ask_again():
    busy = Reply(status=429, raw_body="{}", headers=(("Retry-After", "600"),))
    with ScriptedServer(lambda *_: busy) as server:
        throttle, failures = Throttle(), []

        def one():
            try:
                said(server, throttle=throttle)
            except ModelError as error:
                failures.append(error)

        thread = threading.Thread(target=one)
        thread.start()
        while not server.prompts:
            time.sleep(0.01)
        throttle.stop(ModelError("auth"))
        thread.join(10)
    assert [error.kind for error in failures] in (["auth"], ["rate limit"])
