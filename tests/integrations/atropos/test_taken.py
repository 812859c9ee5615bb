"""Nothing is let go that would die with the API; everything is, once the trainer goes on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stenograph.integrations.atropos.taken import Taken

BATCH = 2


class Queue:
    """atroposlib's: batches from the front, all that there are; fetched one by one, the last formed first."""

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.formed: list[list[int]] = []
        self.step = 0

    def fetch(self) -> None:
        if not self.formed:
            while len(self.queue) >= BATCH:
                self.formed.append(self.queue[:BATCH])
                del self.queue[:BATCH]
                self.step += 1
        if self.formed:
            self.formed.pop()

    @property
    def held(self) -> set[int]:
        return {*self.queue, *(number for batch in self.formed for number in batch)}


STEPS = st.lists(st.sampled_from(["ours", "another's", "fetch", "look"]))


@given(STEPS)
def test_what_the_api_still_holds_is_not_let_go(steps: list[str]) -> None:
    api, taken, number = Queue(), Taken(), 0
    for step in steps:
        match step:
            case "ours":
                number += 1
                api.queue.append(number)
                taken.accept(number, buffered=None)
            case "another's":
                api.queue.append(-1)
            case "fetch":
                api.fetch()
            case "look":
                assert not api.held & set(taken.look(len(api.queue), api.step))


@given(st.lists(st.booleans(), min_size=1))
def test_all_is_let_go_once_the_trainer_goes_on(looks: list[bool]) -> None:
    api, taken, gone = Queue(), Taken(), list[int]()
    for number, look in enumerate(looks):
        api.queue.append(number)
        taken.accept(number, buffered=None)
        if look:
            api.fetch()
            gone += taken.look(len(api.queue), api.step)
    while api.held:
        api.fetch()
        gone += taken.look(len(api.queue), api.step)
        api.queue += [-1] * (len(api.queue) % BATCH)
    api.queue += [-1] * BATCH
    api.fetch()
    gone += taken.look(len(api.queue), api.step)
    assert sorted(gone) == list(range(len(looks)))


def test_where_sizes_are_mixed_only_an_empty_queue_says_that_all_are_taken() -> None:
    taken = Taken()
    taken.accept(1, buffered=3)
    taken.accept(2, buffered=None)
    assert taken.look(queued=1, formed=1) == []
    assert taken.look(queued=0, formed=2) == [], "one waits in the buffer still"
    taken.accept(3, buffered=0)
    assert taken.look(queued=0, formed=3) == []
    assert taken.look(queued=0, formed=4) == [1, 2, 3]


def test_what_an_earlier_process_sent_goes_the_same_way() -> None:
    taken = Taken([1, 2])
    assert taken.look(queued=1, formed=5) == []
    assert taken.look(queued=0, formed=6) == [1]
    assert taken.look(queued=0, formed=7) == [2]
    mixed = Taken([1, 2], mixed=True)
    assert mixed.look(queued=1, formed=5) == mixed.look(queued=0, formed=6) == []
    assert mixed.look(queued=0, formed=7) == [1, 2]
